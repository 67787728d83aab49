// Vercel's AI SDK with its provider for Bedrock: each round prints what it saw as a line of JSON.
// node ai_sdk_rounds.mjs BASE_URL FOLDER_OF_THE_PACKAGES KEY ROUND...     (node 22)

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [baseURL, folder, key, ...asked] = process.argv.slice(2);
const load = createRequire(join(folder, 'package.json'));
const { generateText, isStepCount, jsonSchema, streamText, tool } = load('ai');
const { createAmazonBedrock } = load('@ai-sdk/amazon-bedrock');

const PLAN =
  'use weather with {"city":"Oslo"} and use weather with {"city":"Rome"} then use weather with {"city":"nowhere"}';

function connect(auth, secret = key) {
  const login = auth === 'bearer' ? { apiKey: secret } : { accessKeyId: 'gateway', secretAccessKey: secret };
  return createAmazonBedrock({ baseURL, region: 'us-east-1', ...login })('us.anthropic.claude-gemini-3.8-flash-v1:0');
}

function settings(auth, ran) {
  const weather = tool({
    description: 'The weather of a city',
    inputSchema: jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }),
    execute: async ({ city }) => {
      ran.push(city);
      if (city === 'nowhere') throw new Error('no such city');
      return `sun over ${city}`;
    },
  });
  return { model: connect(auth), tools: { weather }, stopWhen: isStepCount(5), maxRetries: 0 };
}

const rounds = {
  async whole(auth) {
    const ran = [];
    const answer = await generateText({ ...settings(auth, ran), prompt: PLAN });
    return { ran, text: answer.text, finish: answer.finishReason, tokens: answer.totalUsage.totalTokens };
  },

  async stream(auth) {
    const ran = [];
    const answer = streamText({ ...settings(auth, ran), prompt: PLAN });
    for await (const part of answer.fullStream) if (part.type === 'error') throw part.error;
    return { ran, text: await answer.text, finish: await answer.finishReason, tokens: (await answer.totalUsage).totalTokens };
  },

  async thinking(auth) {
    const ran = [];
    const providerOptions = { bedrock: { reasoningConfig: { type: 'enabled', budgetTokens: 2048 } } };
    const prompt = 'think Easy. then use weather with {"city":"Bern"}';
    const answer = await generateText({ ...settings(auth, ran), providerOptions, prompt });
    return { ran, text: answer.text, thought: answer.steps[0].reasoningText };
  },

  async picture(auth) {
    const file = { type: 'file', mediaType: 'image/png', data: Buffer.from(process.env.PICTURE, 'base64') };
    const content = [file, { type: 'text', text: 'Hmm, what have we here?' }];
    return (await generateText({ model: connect(auth), messages: [{ role: 'user', content }], maxRetries: 0 })).text;
  },

  async stranger(auth) {
    try {
      await generateText({ model: connect(auth, 'not-the-key-000000000'), prompt: 'say hello', maxRetries: 0 });
    } catch (error) {
      return { status: error.statusCode, message: error.message };
    }
    return null;
  },
};

for (const one of asked) {
  const [round, auth] = one.split(':');
  console.log(JSON.stringify([one, await rounds[round](auth)]));
}
