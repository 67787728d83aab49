// Before anything is painted: the theme that was chosen, if one was; otherwise the system's.
(() => {
  const chosen = localStorage.getItem("dragoman.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
