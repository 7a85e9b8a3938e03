// The code of a feature is loaded, and parsed, where the feature is on: each boot below switches one more on.
const assert = require('node:assert/strict');
const { basename } = require('node:path');
const { Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { PerfModule, staticGates } = require('nestjs-perf');

const features = [
  ['compression', 'compression'],
  ['defer', 'defer-lifecycle'],
  ['eventLoop', 'event-loop'],
  ['upstream', 'upstream-observer'],
  ['history', 'history-keeper'],
  ['dashboard', 'dashboard'],
  ['experiments', 'experiment-engine', { gates: staticGates({}) }],
];
const fileNames = features.map(([, file]) => `nestjs-perf.${file}.js`);
const loaded = () =>
  Object.keys(require.cache)
    .map((file) => basename(file))
    .filter((file) => fileNames.includes(file));

async function boot(options) {
  class App {}
  Module({ imports: [PerfModule.forRoot(options)] })(App);
  await (await NestFactory.createApplicationContext(App, { logger: false })).close();
}

async function main() {
  const options = Object.fromEntries(features.map(([name]) => [name, false]));
  await boot(options);
  assert.deepEqual(loaded(), [], 'loaded with everything off');
  for (const [index, [name, , given = true]] of features.entries()) {
    options[name] = given;
    await boot(options);
    assert.deepEqual(loaded().sort(), fileNames.slice(0, index + 1).sort(), `${name} is on`);
  }
  console.log(`${features.length} features`);
}

void main();
