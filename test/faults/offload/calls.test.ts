import { afterEach, describe, expect, it } from 'vitest';
import { closeOffloadApps, compiled, offloadApp } from '../../fixtures/offload/app.js';

afterEach(closeOffloadApps);

describe('an offloaded method', () => {
  it('runs in a worker, with what is injected there', async () => {
    const { reports } = await offloadApp();
    expect(await reports.whereabouts()).toMatchObject({ isMainThread: false, secret: 42 });
    expect(await reports.inherited()).toBe(false);
  });
  it('runs a file', async () => {
    const { offloader } = await offloadApp();
    expect(await offloader.run(compiled('job'), { n: 7 })).toEqual({ isMainThread: false, squared: 49 });
  });
});
