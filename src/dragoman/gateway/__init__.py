"""The gateway as an ASGI application: routes, authentication, limits, the relay to Google, gateway tools, the dashboard.

`app` receives a request, `routes` finds its handler, `relay` answers it. The process around it (sockets, workers,
signals) is `dragoman.process`.
"""
