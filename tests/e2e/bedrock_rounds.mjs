// Amazon's JavaScript SDK for Bedrock, over HTTP/2 (its default) and HTTP/1.1, signed or with a bearer token:
// each round prints what it saw as a line of JSON.
// node bedrock_rounds.mjs BASE_URL FOLDER_OF_THE_PACKAGES KEY ROUND...

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [endpoint, folder, key, ...asked] = process.argv.slice(2);
const load = createRequire(join(folder, 'package.json'));
const {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  CountTokensCommand,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
} = load('@aws-sdk/client-bedrock-runtime');
const { NodeHttpHandler } = load('@smithy/node-http-handler');

const modelId = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
const arn = `arn:aws:bedrock:us-east-1:123456789012:inference-profile/${modelId}`;
const toolConfig = {
  tools: [
    {
      toolSpec: {
        name: 'weather',
        description: 'The weather of a city',
        inputSchema: { json: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
      },
    },
  ],
};
const system = [{ text: 'Be brief.' }];
const PLAN =
  'use weather with {"city":"Oslo"} and use weather with {"city":"Rome"} then use weather with {"city":"nowhere"}';

function connect(transport, auth, secret = key) {
  const requestHandler = transport === 'http1' ? new NodeHttpHandler() : undefined;
  const credentials =
    auth === 'bearer'
      ? { token: { token: secret }, authSchemePreference: ['httpBearerAuth'] }
      : { credentials: { accessKeyId: 'gateway', secretAccessKey: secret } };
  return new BedrockRuntimeClient({ region: 'us-east-1', endpoint, maxAttempts: 1, requestHandler, ...credentials });
}

const user = (...content) => ({ role: 'user', content });
const toolUses = (message) => message.content.filter((block) => block.toolUse).map((block) => block.toolUse);

function runTool({ toolUseId, input: { city } }) {
  if (city === 'nowhere') return { toolResult: { toolUseId, content: [{ text: 'no such city' }], status: 'error' } };
  const content = city === 'Rome' ? [{ json: { sky: `sun over ${city}` } }] : [{ text: `sun over ${city}` }];
  return { toolResult: { toolUseId, content, status: 'success' } };
}

async function whole(client, request) {
  const answer = await client.send(new ConverseCommand({ modelId, ...request }));
  const { output, stopReason, usage, metrics } = answer;
  return { message: output.message, stop: stopReason, tokens: usage.totalTokens, timed: metrics.latencyMs >= 0 };
}

async function streamed(client, request) {
  const { stream } = await client.send(new ConverseStreamCommand({ modelId, ...request }));
  const seen = { message: { content: [] }, stop: null, tokens: 0, timed: false };
  const blocks = seen.message.content;
  for await (const event of stream) {
    if (event.messageStart) seen.message.role = event.messageStart.role;
    if (event.contentBlockStart) blocks[event.contentBlockStart.contentBlockIndex] = { toolUse: { ...event.contentBlockStart.start.toolUse, input: '' } };
    if (event.contentBlockDelta) add(blocks, event.contentBlockDelta);
    if (event.contentBlockStop) close(blocks[event.contentBlockStop.contentBlockIndex]);
    if (event.messageStop) seen.stop = event.messageStop.stopReason;
    if (event.metadata) Object.assign(seen, { tokens: event.metadata.usage.totalTokens, timed: event.metadata.metrics.latencyMs >= 0 });
  }
  return seen;
}

function add(blocks, { contentBlockIndex: index, delta }) {
  if (delta.text !== undefined) (blocks[index] ??= { text: '' }).text += delta.text;
  if (delta.toolUse) blocks[index].toolUse.input += delta.toolUse.input;
  if (delta.reasoningContent) {
    const { reasoningText } = (blocks[index] ??= { reasoningContent: { reasoningText: { text: '' } } }).reasoningContent;
    reasoningText.text += delta.reasoningContent.text ?? '';
    if (delta.reasoningContent.signature) reasoningText.signature = delta.reasoningContent.signature;
  }
}

function close(block) {
  if (block.toolUse) block.toolUse.input = JSON.parse(block.toolUse.input);
}

async function converse(client, ask, request) {
  const messages = [...request.messages];
  const turns = [];
  for (;;) {
    const seen = await ask(client, { ...request, messages });
    const calls = toolUses(seen.message);
    turns.push({ ...seen, calls: calls.map((call) => call.input.city), ids: calls.map((call) => call.toolUseId) });
    if (!calls.length) return turns;
    messages.push(seen.message, user(...calls.map(runTool)));
  }
}

async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return { name: error.name, status: error.$metadata?.httpStatusCode, message: error.message };
  }
  return null;
}

const rounds = {
  whole: (client) => converse(client, whole, { system, messages: [user({ text: PLAN })], toolConfig }),

  stream: (client) => converse(client, streamed, { system, messages: [user({ text: PLAN })], toolConfig }),

  async thinking(client) {
    const additionalModelRequestFields = { thinking: { type: 'enabled', budget_tokens: 2048 } };
    const messages = [user({ text: 'think Easy. then use weather with {"city":"Oslo"}' })];
    return converse(client, streamed, { messages, toolConfig, additionalModelRequestFields });
  },

  async text(client) {
    return streamed(client, { messages: [user({ text: 'say good morning' })] });
  },

  async long(client) {
    // More than any window of HTTP/2, both ways.
    const words = Array.from({ length: 20000 }, (_, number) => `word${number}`).join(' ');
    const seen = await streamed(client, { messages: [user({ text: `say ${words}` })] });
    return { same: seen.message.content[0].text === words, stop: seen.stop };
  },

  async many(client) {
    // Many streams at once: over HTTP/2 they share connections.
    const numbers = Array.from({ length: 12 }, (_, number) => number);
    const one = (number) => streamed(client, { messages: [user({ text: `say ${`number ${number} `.repeat(200)}` })] });
    const seen = await Promise.all(numbers.map(one));
    return seen.map((answer, number) => answer.message.content[0].text.trim() === `number ${number} `.repeat(200).trim());
  },

  async picture(client) {
    const bytes = Buffer.from(process.env.PICTURE, 'base64');
    return whole(client, { messages: [user({ image: { format: 'png', source: { bytes } } }, { text: 'Hmm, what have we here?' })] });
  },

  async count(client) {
    const input = { converse: { system, messages: [user({ text: 'say good morning' })], toolConfig } };
    return (await client.send(new CountTokensCommand({ modelId, input }))).inputTokens;
  },

  async invoke(client) {
    const body = { anthropic_version: 'bedrock-2023-05-31', max_tokens: 100, messages: [{ role: 'user', content: 'say good morning' }] };
    const answer = await client.send(new InvokeModelCommand({ modelId, contentType: 'application/json', body: JSON.stringify(body) }));
    return JSON.parse(new TextDecoder().decode(answer.body));
  },

  // Percent-encoded in the address, its slash too, and once more in what is signed.
  async arn(client) {
    return streamed(client, { modelId: arn, messages: [user({ text: 'say good morning' })] });
  },

  async chunks(client) {
    const body = { anthropic_version: 'bedrock-2023-05-31', max_tokens: 100, messages: [{ role: 'user', content: PLAN }] };
    body.tools = toolConfig.tools.map(({ toolSpec: { name, inputSchema } }) => ({ name, input_schema: inputSchema.json }));
    const ask = new InvokeModelWithResponseStreamCommand({ modelId: arn, contentType: 'application/json', body: JSON.stringify(body) });
    const events = [];
    for await (const { chunk } of (await client.send(ask)).body) events.push(JSON.parse(new TextDecoder().decode(chunk.bytes)));
    return events.map((event) => event.content_block?.name ?? event.delta?.stop_reason ?? event.type);
  },

  async refused(client) {
    return errorOf(streamed(client, { messages: [user({ text: 'say hello' })], toolConfig }));
  },
};

for (const one of asked) {
  const [round, transport, auth] = one.split(':');
  const client = connect(transport, auth, round === 'stranger' ? 'not-the-key-000000000' : key);
  console.log(JSON.stringify([one, await rounds[round === 'stranger' ? 'refused' : round](client)]));
  client.destroy();
}
