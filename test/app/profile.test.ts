import { Controller, Get } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { PerfService, type PerfModuleOptions } from '../../src/index.js';
import type { CpuProfile } from '../../src/event-loop/profile/cpu-profile.js';
import { type Adapter, either, startApp } from '../fixtures/app.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

@Controller()
class PingController {
  @Get('ping')
  ping() {
    return {};
  }
}

const start = (adapter: Adapter, perf: PerfModuleOptions = {}) =>
  startApp(adapter, { perf, metadata: { controllers: [PingController] } });

describe.each(either('express'))('perf.profile(), on %s', (adapter) => {
  it.each([
    { eventLoop: false },
    { eventLoop: { profile: false } },
    { enabled: false },
    { eventLoop: { profile: false, stack: false } },
  ])('with %j rejects, with the line to change', async (perf) => {
    const running = await start(adapter, perf);
    const made = running.app.get(PerfService).profile();
    await expect(made).rejects.toMatchObject({ code: 'PERF_ERR_OFF' });
    await expect(made).rejects.toThrow('Set `eventLoop: { profile: true }` in PerfModule.forRoot()');
    await running.close();
  });

  it('refuses a wrong option', async () => {
    const running = await start(adapter);
    const perf = running.app.get(PerfService);
    for (const wrong of [{ seconds: 0 }, { seconds: 301 }, { seconds: '5' }, { route: '' }, { routes: 'GET /ping' }]) {
      await expect(perf.profile(wrong as object)).rejects.toMatchObject({ code: 'PERF_ERR_OPTION' });
    }
    await running.close();
  });

  it('has the routes as the outermost calls', async () => {
    const running = await start(adapter);
    for (let i = 0; i < 20; i++) await (await fetch(`${running.url}/ping`)).text();
    const profile = await running.app.get(PerfService).profile();
    expect(profile.samples).toBeGreaterThanOrEqual(profile.idle);
    const { nodes, samples, timeDeltas, startTime, endTime } = profile.toCpuProfile() as CpuProfile;
    const [root, ...others] = nodes;
    expect(root!.callFrame.functionName).toBe('(root)');
    const outermost = others.filter(({ id }) => root!.children.includes(id));
    const names = outermost.map(({ callFrame }) => callFrame.functionName);
    expect(names).toContain('(idle)');
    expect(names.filter((name) => !['(idle)', 'background', 'GET /ping'].includes(name))).toEqual([]);
    expect(samples).toHaveLength(timeDeltas.length);
    expect(endTime).toBeGreaterThan(startTime);
    await running.close();
  });

  it('under way ends when the application closes', async () => {
    const running = await start(adapter);
    const made = running.app.get(PerfService).profile({ seconds: 300 });
    await running.close();
    expect((await made).routes).toEqual([]);
  });
});
