import { BadRequestException, Controller, Get, Inject, Injectable, Param, Post } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { defer, Deferrer, DeferWork } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { either, startApp, type TestApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

@Controller('work')
class WorkController {
  @Get('defer')
  deferWithout() {
    defer(() => {});
    return 'ok';
  }
  @Get('decorated')
  @DeferWork(({ requestId }) => void ran.push(requestId))
  decorated() {
    return 'ok';
  }
}
const ran: string[] = [];

@Injectable()
class Asks {
  constructor(@Inject(Deferrer) readonly deferrer: Deferrer) {}
}

const codeOfDefer = (): unknown => {
  try {
    return defer(() => {});
  } catch (error) {
    return (error as { code: string }).code;
  }
};

@Controller('calls')
class CallsBack {
  @Get('at-once')
  atOnce() {
    return codeOfDefer();
  }
  @Get('later')
  later() {
    return new Promise((resolve) => setTimeout(() => resolve(codeOfDefer()), 1));
  }
}

@Controller('later')
class DefersLater {
  @Post(':status')
  async create(@Param('status') status: string) {
    await new Promise<void>((resolve) => {
      setTimeout(() => {
        defer(() => void ran.push('success'));
        defer(() => void ran.push('error'), { when: 'error' });
        defer(() => void ran.push('always'), { when: 'always' });
        resolve();
      }, 1);
    });
    if (status === '400') throw new BadRequestException('refused');
  }
}

let letGo: (() => void) | null = null;
@Controller('waits')
class Waits {
  @Get()
  get() {
    return new Promise<void>((resolve) => (letGo = resolve));
  }
}

describe.each(either('fastify'))('switches of deferred work on %s', (adapter) => {
  let running: TestApp | null = null;
  afterEach(async () => {
    await running?.close();
    running = null;
    letGo = null;
    ran.length = 0;
  });
  const metadata = { controllers: [WorkController] };

  it('defer: false: Deferrer can be injected and every method throws PERF_ERR_OFF', async () => {
    running = await startApp(adapter, { perf: { defer: false }, metadata: { providers: [Asks] } });
    const { deferrer } = running.app.get(Asks);
    const queue = { name: 'q', addBulk: () => Promise.resolve() };
    expect(() => deferrer.defer(() => {})).toThrow('PERF_ERR_OFF: `deferrer.defer()`');
    expect(() => deferrer.addJob(queue, 'n', {})).toThrow('PERF_ERR_OFF: `deferrer.addJob()`');
    expect(() => deferrer.stats()).toThrow('PERF_ERR_OFF: `deferrer.stats()`');
    await expect(deferrer.idle()).rejects.toThrow('PERF_ERR_OFF: `deferrer.idle()`');
  });

  it('defer: false: defer() throws PERF_ERR_OFF, whatever else runs in the process', async () => {
    running = await startApp(adapter, { perf: { defer: false }, metadata: { controllers: [CallsBack] } });
    const codes = async (): Promise<unknown> =>
      Promise.all(['at-once', 'later'].map(async (path) => (await fetch(`${running!.url}/calls/${path}`)).text()));
    expect(await codes()).toEqual(['PERF_ERR_OFF', 'PERF_ERR_OFF']);
    const other = await startApp(adapter, { metadata });
    for (let i = 0; i < 2; i++) expect(await codes()).toEqual(['PERF_ERR_OFF', 'PERF_ERR_OFF']);
    const { accepted } = other.app.get(Deferrer).stats();
    defer(() => {});
    expect([accepted, other.app.get(Deferrer).stats().accepted]).toEqual([0, 1]);
    await other.close();
  });

  it.each([{}, { defer: false }])('defer() outside a request waits for no request that is open: %j', async (perf) => {
    const other = await startApp(adapter, { perf, metadata: { controllers: [Waits] } });
    running = await startApp(adapter, { metadata: { providers: [Asks] } });
    const answered = fetch(`${other.url}/waits`);
    await until('the request', () => letGo !== null);
    for (let i = 0; i < 2; i++) defer(() => void ran.push('outside'));
    await until('the work', () => ran.length === 2);
    letGo!();
    await answered;
    await other.close();
  });

  it('outside a request, defer() does not go to an application whose boot has failed', async () => {
    @Injectable()
    class Unwell {
      onModuleInit(): void {
        throw new Error('boot fails');
      }
    }
    await expect(startApp(adapter, { metadata: { providers: [Unwell] } })).rejects.toThrow('boot fails');
    running = await startApp(adapter);
    const turns: string[] = [];
    defer(() => turns.push('task'));
    await running.app.get(Deferrer).idle();
    expect(turns).toEqual(['task']);
  });

  it('the first defer() of all heeds `when`', async () => {
    for (const status of [400, 201]) {
      running = await startApp(adapter, { metadata: { controllers: [DefersLater] } });
      expect((await fetch(`${running.url}/later/${status}`, { method: 'POST' })).status).toBe(status);
      await settle(running.app);
      expect(ran.splice(0)).toEqual(status === 400 ? ['error', 'always'] : ['success', 'always']);
      await running.close();
    }
  });

  it('an injected Deferrer waits for no request of another application', async () => {
    const other = await startApp(adapter, { metadata: { controllers: [Waits] } });
    running = await startApp(adapter, { metadata: { providers: [Asks] } });
    const answered = fetch(`${other.url}/waits`);
    await until('the request', () => letGo !== null);
    const { deferrer } = running.app.get(Asks);
    deferrer.defer(() => void ran.push('outside'));
    await until('the work', () => ran.includes('outside'));
    letGo!();
    await answered;
    await other.close();
  });

  it('@DeferWork needs no latency', async () => {
    running = await startApp(adapter, { perf: { latency: false }, metadata });
    await fetch(`${running.url}/work/decorated`, { headers: { 'x-request-id': 'r-1' } });
    await settle(running.app);
    expect(ran).toEqual(['r-1']);
  });

  it('applications in one process do not see each other’s work', async () => {
    const other = await startApp(adapter, { metadata, perf: {} });
    running = await startApp(adapter, { metadata, perf: {} });
    await fetch(`${running.url}/work/decorated`);
    await fetch(`${running.url}/work/defer`);
    await settle(running.app);
    expect(running.app.get(Deferrer).stats()).toMatchObject({ accepted: 2, completed: 2 });
    expect(other.app.get(Deferrer).stats().accepted).toBe(0);
    await other.close();
  });
});
