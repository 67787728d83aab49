// Amazon Q's agent engine as the IDE plugins run it: the language server with its chat and its own tools, on stdio.
// node q_language_server.cjs FOLDER_OF_THE_PACKAGES --stdio

const { createRequire } = require('node:module');
const { join } = require('node:path');

const load = createRequire(join(process.argv[2], 'package.json'));
// The newest types that can be had are older than the runtime and lack this name; without it no chat starts.
load('@aws/language-server-runtimes-types').FILTER_CONTEXT_COMMANDS_REQUEST_METHOD ??= 'aws/chat/filterContextCommands';
const { standalone } = load('@aws/language-server-runtimes/runtimes');
const q = load('@aws/lsp-codewhisperer');
const tools = load('@aws/lsp-codewhisperer/out/language-server/agenticChat/tools/toolServer');

standalone({
  name: 'AWS CodeWhisperer',
  version: '0.0.128',
  servers: [
    q.AmazonQServiceServerToken,
    q.QAgenticChatServerProxy,
    q.QConfigurationServerTokenProxy,
    tools.FsToolsServer,
    tools.BashToolsServer,
    tools.McpToolsServer,
  ],
});
