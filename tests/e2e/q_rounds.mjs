// Amazon's streaming client of Q and Kiro, in its three wire forms: each round prints what it saw as a line of JSON.
// node q_rounds.mjs BASE_URL FOLDER_OF_THE_PACKAGES KEY ROUND...

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [endpoint, folder, key, ...asked] = process.argv.slice(2);
const load = createRequire(join(folder, 'package.json'));
const { CodeWhispererStreamingClient, GenerateAssistantResponseCommand, SendMessageCommand } = load(
  '@aws/codewhisperer-streaming-client',
);
const { AwsJson1_0Protocol } = load('@aws-sdk/core/protocols');
const { errorTypeRegistries } = load('@aws/codewhisperer-streaming-client/dist-cjs/schemas/schemas_0');

const settings = {
  defaultNamespace: 'com.amazon.aws.codewhisperer.streaming',
  errorTypeRegistries,
  version: '2023-11-27',
};
const FORMS = {
  rest: {},
  cli: {
    protocol: AwsJson1_0Protocol,
    protocolSettings: { ...settings, serviceTarget: 'AmazonCodeWhispererStreamingService' },
  },
  kiro: { protocol: AwsJson1_0Protocol, protocolSettings: { ...settings, serviceTarget: 'KiroRuntimeService' } },
};
const OPERATIONS = {
  generate: async (client, request) =>
    (await client.send(new GenerateAssistantResponseCommand(request))).generateAssistantResponseResponse,
  send: async (client, request) => (await client.send(new SendMessageCommand(request))).sendMessageResponse,
};
const WEATHER = {
  toolSpecification: {
    name: 'weather',
    description: 'The weather of a city',
    inputSchema: {
      json: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
    },
  },
};
const PLAN =
  'use weather with {"city":"Oslo"} and use weather with {"city":"Rome"} then use weather with {"city":"nowhere"}';

const clients = [];

function connect(form, token = key) {
  const login = { region: 'us-east-1', endpoint, token: { token } };
  const client = new CodeWhispererStreamingClient({ ...login, maxAttempts: 1, ...FORMS[form] });
  clients.push(client);
  return client;
}

function say(content, context = {}, more = {}) {
  const userInputMessage = {
    content,
    modelId: 'claude-sonnet-4',
    origin: 'CLI',
    userInputMessageContext: { tools: [WEATHER], ...context },
    ...more,
  };
  return { userInputMessage };
}

function runTool({ toolUseId, input }) {
  const { city } = JSON.parse(input);
  if (city === 'nowhere') return { toolUseId, content: [{ text: 'no such city' }], status: 'error' };
  const content = city === 'Rome' ? [{ json: { sky: `sun over ${city}` } }] : [{ text: `sun over ${city}` }];
  return { toolUseId, content, status: 'success' };
}

async function read(stream) {
  const seen = { kinds: [], text: '', thought: '', signature: '', tools: [], tokens: 0 };
  for await (const event of stream) {
    const [kind] = Object.keys(event);
    if (seen.kinds.at(-1) !== kind) seen.kinds.push(kind);
    const value = event[kind];
    if (kind === 'assistantResponseEvent') seen.text += value.content;
    if (kind === 'reasoningContentEvent') {
      seen.thought += value.text ?? '';
      seen.signature += value.signature ?? '';
    }
    if (kind === 'toolUseEvent') {
      const last = seen.tools.at(-1);
      if (last?.toolUseId === value.toolUseId) last.input += value.input ?? '';
      else seen.tools.push({ toolUseId: value.toolUseId, name: value.name, input: value.input ?? '' });
    }
    if (kind === 'metadataEvent') seen.tokens = value.tokenUsage?.totalTokens;
  }
  return seen;
}

async function converse(form, operation, first, client = connect(form)) {
  const state = { conversationId: `${form}-${operation}-${Date.now()}`, chatTriggerType: 'MANUAL', history: [] };
  const turns = [];
  let currentMessage = first;
  for (;;) {
    const seen = await read(await OPERATIONS[operation](client, { conversationState: { ...state, currentMessage } }));
    turns.push(seen);
    if (!seen.tools.length) return turns;
    const { userInputMessageContext: context, ...said } = currentMessage.userInputMessage;
    const { toolResults } = context;
    // History never repeats the tools.
    state.history.push({ userInputMessage: { ...said, userInputMessageContext: toolResults ? { toolResults } : {} } });
    const toolUses = seen.tools.map((tool) => ({ ...tool, input: JSON.parse(tool.input) }));
    const reasoningText = { text: seen.thought, signature: seen.signature };
    const reasoning = seen.signature ? { reasoningContent: { reasoningText } } : {};
    state.history.push({ assistantResponseMessage: { content: seen.text, toolUses, ...reasoning } });
    currentMessage = say('', { toolResults: seen.tools.map(runTool) });
  }
}

async function errorOf(action) {
  try {
    await action();
  } catch (error) {
    return { name: error.name, status: error.$metadata?.httpStatusCode, message: error.message, reason: error.reason };
  }
  return null;
}

function refused(client, operation) {
  const conversationState = { chatTriggerType: 'MANUAL', currentMessage: say('say hello') };
  return errorOf(async () => read(await OPERATIONS[operation](client, { conversationState })));
}

const rounds = {
  tools: (form, operation) => converse(form, operation, say(PLAN)),

  async text(form, operation) {
    return converse(form, operation, say('say good morning', { tools: [] }));
  },

  thinking(form, operation) {
    // Kiro says so, in a field this client's model is too old for.
    const client = connect(form);
    const think = (next) => (args) => {
      const body = JSON.parse(args.request.body);
      body.additionalModelRequestFields = { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } };
      args.request.body = JSON.stringify(body);
      return next(args);
    };
    client.middlewareStack.add(think, { step: 'build', priority: 'high' });
    return converse(form, operation, say('think Easy. then use weather with {"city":"Bern"}'), client);
  },

  async picture(form, operation) {
    const bytes = Buffer.from(process.env.PICTURE, 'base64');
    const images = [{ format: 'png', source: { bytes } }];
    const documents = [{ name: 'notes', format: 'txt', source: { bytes: Buffer.from('A page.') } }];
    return converse(form, operation, say('Hmm, what have we here?', { tools: [] }, { images, documents }));
  },

  async cancelled(form, operation) {
    // The user refused the tool and said something new: results and prompt in one message.
    const client = connect(form);
    const ask = say('use weather with {"city":"Oslo"}');
    const conversationState = { conversationId: 'cancelled', chatTriggerType: 'MANUAL', currentMessage: ask };
    const [call] = (await read(await OPERATIONS[operation](client, { conversationState }))).tools;
    const toolUses = [{ ...call, input: JSON.parse(call.input) }];
    const history = [ask, { assistantResponseMessage: { content: '', toolUses } }];
    const cancelled = { toolUseId: call.toolUseId, content: [{ text: 'Tool use was cancelled by the user' }], status: 'error' };
    const currentMessage = say('say never mind', { toolResults: [cancelled] });
    const next = { ...conversationState, history, currentMessage };
    return read(await OPERATIONS[operation](client, { conversationState: next }));
  },

  // With a key that is none, and wherever the gateway or Google refuses, before the answer or in the middle of it.
  stranger: (form, operation) => refused(connect(form, 'not-the-key-000000000'), operation),

  refused: (form, operation) => refused(connect(form), operation),
};

for (const one of asked) {
  const [round, form, operation] = one.split(':');
  console.log(JSON.stringify([one, await rounds[round](form, operation)]));
}
// An answer that broke off would keep its connection, and this program, alive.
for (const client of clients) client.destroy();
