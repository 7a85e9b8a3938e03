import { channel } from 'node:diagnostics_channel';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { Channels } from '../../../src/upstream/channels.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const turn = () => new Promise((resolve) => setTimeout(resolve, 1));

it('a client that is loaded after an application has closed is heard by the next one', async () => {
  const name = `test:${process.pid}:loaded-late`;
  const listen = (hear: () => void) => {
    const channels = new Channels(new OncePerCause({ log() {}, warn() {}, error() {} }, () => 0));
    channels.on(name, hear);
    return channels;
  };
  listen(() => {}).close();
  await turn();
  collectGarbage();
  const ofClient = channel(name);
  for (let turns = 0; turns < 3; turns++) await turn();
  let heard = 0;
  const channels = listen(() => (heard += 1));
  ofClient.publish({});
  channels.close();
  expect(heard).toBe(1);
});
