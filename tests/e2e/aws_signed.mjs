// Requests signed as aws-sdk-js signs them, over HTTP/1.1 and HTTP/2: the cases on stdin, one answer each on stdout.
// node aws_signed.mjs BASE_URL FOLDER
// [{http: 1|2, method, path, query, headers, body, secret, token, checksum}] -> [{status, text}]

import { createHash, createHmac } from 'node:crypto';
import http from 'node:http';
import http2 from 'node:http2';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const [baseUrl, folder] = process.argv.slice(2);
const { SignatureV4 } = createRequire(join(folder, 'program.js'))('@smithy/signature-v4');
const { hostname, port, host } = new URL(baseUrl);

class Sha256 {
  constructor(secret) {
    this.hash = secret ? createHmac('sha256', Buffer.from(secret)) : createHash('sha256');
  }

  update(data) {
    this.hash.update(data);
  }

  async digest() {
    return new Uint8Array(this.hash.digest());
  }
}

async function sign({ method, path, query, headers, body, secret, token, checksum }, name) {
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: secret, sessionToken: token };
  const signer = new SignatureV4({
    service: 'bedrock',
    region: 'us-east-1',
    sha256: Sha256,
    applyChecksum: checksum,
    credentials,
  });
  const request = { method, protocol: 'http:', hostname, port: Number(port), path, query, body };
  return (await signer.sign({ ...request, headers: { ...headers, [name]: host } })).headers;
}

function target({ path, query }) {
  const pairs = Object.entries(query).map((pair) => pair.map(encodeURIComponent).join('='));
  return pairs.length ? `${path}?${pairs.join('&')}` : path;
}

async function overHttp1(one) {
  const headers = { ...(await sign(one, 'host')), 'content-length': Buffer.byteLength(one.body) };
  return new Promise((resolve, reject) => {
    const request = http.request({ hostname, port, method: one.method, path: target(one), headers }, async (answer) => {
      resolve({ status: answer.statusCode, text: await text(answer) });
    });
    request.on('error', reject);
    request.end(one.body);
  });
}

async function overHttp2(one) {
  const headers = await sign(one, ':authority');
  const session = http2.connect(baseUrl);
  try {
    const stream = session.request({ ...headers, ':method': one.method, ':path': target(one) });
    const status = new Promise((resolve, reject) => {
      stream.on('response', (answer) => resolve(answer[':status']));
      stream.on('error', reject);
      session.on('error', reject);
    });
    if (one.body) stream.write(one.body);
    stream.end();
    return { status: await status, text: await text(stream) };
  } finally {
    session.close();
  }
}

const answers = [];
for (const one of JSON.parse(await text(process.stdin))) {
  answers.push(await (one.http === 2 ? overHttp2(one) : overHttp1(one)));
}
console.log(JSON.stringify(answers));
