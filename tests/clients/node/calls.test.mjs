// Calls every RPC of every contract, with stubs loaded from protos/, in the order of ../calls.json.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const PROTOS = fileURLToPath(new URL("../../../protos", import.meta.url));
const calls = JSON.parse(readFileSync(new URL("../calls.json", import.meta.url), "utf8"));

const files = readdirSync(PROTOS, { recursive: true }).filter((name) => name.endsWith(".proto"));
const definition = loadSync(files, { includeDirs: [PROTOS], longs: String, enums: String, defaults: true });
// A service is the only kind of definition that has no format of its own.
const services = Object.fromEntries(Object.entries(definition).filter(([, value]) => !("format" in value)));

const metadata = new grpc.Metadata();
metadata.set("ramet-space", "node");

const clients = Object.fromEntries(
  Object.entries(services).map(([name, methods]) => {
    const Client = grpc.makeGenericClientConstructor(methods, name);
    return [name, new Client(process.env.RAMET_ADDRESS, grpc.credentials.createInsecure())];
  }),
);
after(() => Object.values(clients).forEach((client) => client.close()));

/** Makes messages of the times in a request: JSON has texts for them, the loader wants seconds and nanos. */
function timed(value) {
  if (Array.isArray(value)) return value.map(timed);
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) {
    const millis = Date.parse(value);
    return { seconds: Math.floor(millis / 1000), nanos: (millis % 1000) * 1_000_000 };
  }
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, timed(each)]));
}

/** Calls one RPC of any kind and resolves to its replies. */
function replies(service, method, request) {
  const client = clients[service];
  const { requestStream, responseStream } = services[service][method];
  const options = { deadline: Date.now() + 20_000 };
  return new Promise((resolve, reject) => {
    if (!responseStream) {
      client[method](request, metadata, options, (error, reply) => (error ? reject(error) : resolve([reply])));
      return;
    }
    const stream = requestStream ? client[method](metadata, options) : client[method](request, metadata, options);
    const received = [];
    stream.on("data", (reply) => received.push(reply));
    stream.on("error", reject);
    stream.on("end", () => resolve(received));
    if (requestStream) {
      for (const each of [request].flat()) stream.write(each);
      stream.end();
    }
  });
}

/** Fails unless a reply holds all that is expected of it. Lists must be equally long. */
function holds(actual, expected, path) {
  if (Array.isArray(expected)) {
    assert.equal(actual?.length, expected.length, `${path}: ${JSON.stringify(actual)}`);
    expected.forEach((value, place) => holds(actual[place], value, `${path}[${place}]`));
  } else if (expected !== null && typeof expected === "object") {
    assert.ok(actual !== null && typeof actual === "object", `${path} is ${actual}`);
    Object.entries(expected).forEach(([name, value]) => holds(actual[name], value, `${path}.${name}`));
  } else {
    assert.equal(actual, expected, path);
  }
}

test("the calls are those of the contracts", () => {
  const rpcs = Object.entries(services).flatMap(([name, methods]) =>
    Object.keys(methods).map((method) => `${name}/${method}`),
  );
  assert.deepEqual(new Set(calls.map((call) => call.method)), new Set(rpcs));
});

for (const call of calls) {
  test(call.method, async () => {
    const [service, method] = call.method.split("/");
    const request = timed(call.request);
    if (call.refused) {
      const error = await replies(service, method, request).then(
        () => assert.fail("the call was not refused"),
        (refusal) => refusal,
      );
      assert.equal(error.code, grpc.status[call.refused.code], String(error));
      const [details] = error.metadata.get("grpc-status-details-bin");
      assert.ok(details.includes(call.refused.reason), String(error));
      return;
    }
    holds(await replies(service, method, request), call.replies ?? [call.reply], call.method);
  });
}
