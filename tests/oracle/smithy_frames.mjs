// smithy's event-stream codec, as aws-sdk-js uses it: a question on stdin, the answer on stdout, both JSON.
// node smithy_frames.mjs FOLDER
// {messages: [{headers: [[name, value]], payload: hex}], streams: [[hex, ...]]}
//   -> {encoded: [hex], decoded: [{messages: [{headers, payload}], error}]}

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const require = createRequire(join(process.argv[2], 'program.js'));
const { EventStreamCodec } = require('@smithy/eventstream-codec');
const { getChunkedStream } = require('@smithy/core/event-streams');

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString('utf8'),
  (string) => new Uint8Array(Buffer.from(string, 'utf8')),
);
const fromHex = (hex) => new Uint8Array(Buffer.from(hex, 'hex'));
const toHex = (bytes) => Buffer.from(bytes).toString('hex');

function encode({ headers, payload }) {
  const typed = Object.fromEntries(headers.map(([name, value]) => [name, { type: 'string', value }]));
  return toHex(codec.encode({ headers: typed, body: fromHex(payload) }));
}

async function decode(pieces) {
  const messages = [];
  async function* source() {
    for (const piece of pieces) yield fromHex(piece);
  }
  try {
    for await (const chunk of getChunkedStream(source())) {
      const { headers, body } = codec.decode(chunk);
      messages.push({
        headers: Object.entries(headers).map(([name, { type, value }]) => [name, type, value]),
        payload: toHex(body),
      });
    }
  } catch (error) {
    return { messages, error: error.message };
  }
  return { messages, error: '' };
}

const asked = JSON.parse(await text(process.stdin));
const answer = { encoded: asked.messages.map(encode), decoded: [] };
for (const pieces of asked.streams) answer.decoded.push(await decode(pieces));
console.log(JSON.stringify(answer));
