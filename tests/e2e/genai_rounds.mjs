// Google's JavaScript SDK against one address: each round prints what it saw as a line of JSON.
// node genai_rounds.mjs BASE_URL PATH_OF_SDK FOLDER

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [baseUrl, sdk, folder] = process.argv.slice(2);
const { ApiError, FunctionCallingConfigMode, GoogleGenAI } = await import(pathToFileURL(sdk));

const model = 'gemini-3.8-flash';
const ai = new GoogleGenAI({ apiKey: 'any', httpOptions: { baseUrl } });
const weather = {
  name: 'get_weather',
  description: 'The current weather of a city',
  parametersJsonSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const clock = { name: 'get_time', description: 'What time it is' };
const tools = [{ functionDeclarations: [weather, clock] }];
const long = 'word '.repeat(4000);

function results(calls) {
  return calls.map(({ id, name, args }) => ({
    functionResponse: { id, name, response: { output: `${name} of ${args?.city ?? 'nowhere'}` } },
  }));
}

async function joinText(stream) {
  let text = '';
  for await (const chunk of stream) text += chunk.text ?? '';
  return text;
}

async function gather(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return { known: error instanceof ApiError, status: error.status, message: error.message };
  }
  return null;
}

const rounds = {
  async generate() {
    const answer = await ai.models.generateContent({ model, contents: 'say good morning' });
    return { text: answer.text, usage: answer.usageMetadata.promptTokenCount, version: answer.modelVersion };
  },

  async stream() {
    const words = 'one two three four five six seven eight nine ten eleven twelve';
    return joinText(await ai.models.generateContentStream({ model, contents: `say ${words}` }));
  },

  async chat() {
    // A whole answer keeps parallel calls in one content, signature and all.
    const chat = ai.chats.create({ model, config: { tools } });
    const asked = 'use get_weather with {"city":"Oslo"} and use get_time with {} then use get_weather with {"city":"Rome"}';
    let answer = await chat.sendMessage({ message: asked });
    const names = [];
    while (answer.functionCalls?.length) {
      names.push(answer.functionCalls.map((call) => call.name));
      answer = await chat.sendMessage({ message: results(answer.functionCalls) });
    }
    const signed = chat.getHistory().flatMap((content) => content.parts).filter((part) => part.thoughtSignature);
    return { names, text: answer.text, signed: signed.length };
  },

  async streamedChat() {
    const chat = ai.chats.create({ model, config: { tools } });
    const calls = [];
    for await (const chunk of await chat.sendMessageStream({ message: 'use get_weather with {"city":"Bern"}' })) {
      calls.push(...(chunk.functionCalls ?? []));
    }
    const text = await joinText(await chat.sendMessageStream({ message: results(calls) }));
    return { text, next: (await chat.sendMessage({ message: 'say bye' })).text };
  },

  async forcedCall() {
    const toolConfig = {
      functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['get_time'] },
    };
    const answer = await ai.models.generateContent({ model, contents: 'hi', config: { tools, toolConfig } });
    return answer.functionCalls.map((call) => call.name);
  },

  async automaticCalls() {
    // The SDK runs the functions of a callable tool by itself.
    const tool = {
      tool: async () => ({ functionDeclarations: [weather] }),
      callTool: async (calls) => results(calls),
    };
    const contents = 'use get_weather with {"city":"Oslo"} then use get_weather with {"city":"Rome"}';
    return (await ai.models.generateContent({ model, contents, config: { tools: [tool] } })).text;
  },

  async count() {
    return (await ai.models.countTokens({ model, contents: 'hello world!' })).totalTokens;
  },

  async files() {
    const path = join(folder, 'notes.txt');
    await writeFile(path, 't'.repeat(4000));
    const file = await ai.files.upload({ file: path, config: { displayName: 'Notes' } });
    const blob = new Blob(['t'.repeat(8 * 1024 * 1024 + 5)], { type: 'text/plain' });
    const large = await ai.files.upload({ file: blob });
    const contents = [{ role: 'user', parts: [{ text: 'look' }, { fileData: { fileUri: file.uri, mimeType: file.mimeType } }] }];
    const answer = await ai.models.generateContent({ model, contents });
    const listed = await gather(await ai.files.list({ config: { pageSize: 1 } }));
    await ai.files.delete({ name: file.name });
    return {
      same: (await ai.files.get({ name: large.name })).sha256Hash === large.sha256Hash,
      sizes: [file.sizeBytes, large.sizeBytes],
      state: file.state,
      tokens: answer.usageMetadata.promptTokenCount,
      listed: listed.length,
      gone: await errorOf(ai.files.get({ name: file.name })),
    };
  },

  async caches() {
    const cache = await ai.caches.create({ model, config: { contents: long, ttl: '600s', displayName: 'Long' } });
    const answer = await ai.models.generateContent({
      model,
      contents: 'say hello',
      config: { cachedContent: cache.name },
    });
    const later = await ai.caches.update({ name: cache.name, config: { ttl: '7200s' } });
    const listed = await gather(await ai.caches.list());
    await ai.caches.delete({ name: cache.name });
    return {
      text: answer.text,
      cached: answer.usageMetadata.cachedContentTokenCount,
      longer: later.expireTime > cache.expireTime,
      listed: listed.map((one) => one.displayName),
      gone: await errorOf(ai.caches.get({ name: cache.name })),
      small: await errorOf(ai.caches.create({ model, config: { contents: 'short' } })),
    };
  },

  async embeddings() {
    const config = { outputDimensionality: 16, taskType: 'RETRIEVAL_DOCUMENT' };
    const many = await ai.models.embedContent({ model: 'gemini-embedding-001', contents: ['a cat', 'a ship'], config });
    const one = await ai.models.embedContent({ model: 'gemini-embedding-2', contents: 'a cat' });
    return [...many.embeddings, ...one.embeddings].map((embedding) => embedding.values.length);
  },

  async models() {
    const pages = await gather(await ai.models.list({ config: { pageSize: 3 } }));
    const one = await ai.models.get({ model });
    return { number: pages.length, different: new Set(pages.map((page) => page.name)).size, limit: one.inputTokenLimit };
  },

  async errors() {
    const broken = { functionDeclarations: [{ name: '1st' }] };
    const trailing = [{ role: 'model', parts: [{ text: 'x' }] }];
    return {
      wrong: await errorOf(ai.models.generateContent({ model, contents: 'x', config: { tools: [broken] } })),
      unknown: await errorOf(ai.models.generateContent({ model: 'gemini-2.0-flash', contents: 'x' })),
      streamed: await errorOf(ai.models.generateContentStream({ model, contents: trailing })),
    };
  },
};

for (const [name, round] of Object.entries(rounds)) {
  console.log(JSON.stringify({ name, saw: await round() }));
}
