import { Controller, Get } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { DeferWork, PerfService } from '../../src/index.js';
import { adapterOf, either } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf } from '../fixtures/build-app.js';
import { callAccepting } from '../fixtures/http-client.js';
import { Lines } from '../fixtures/lines.js';
import { until } from '../fixtures/until.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

const VARIABLE = 'NESTJS_PERF_OFF';

let ran = 0;

@Controller('text')
class TextController {
  @Get()
  text() {
    return { text: 'compressible '.repeat(2_000) };
  }
  @Get('deferred')
  @DeferWork(() => void (ran += 1))
  deferred() {
    return {};
  }
}

afterEach(async () => {
  vi.unstubAllEnvs();
  await closeApps();
});

describe.each(either('express'))(`${VARIABLE} on %s`, (adapter) => {
  async function start(value: string, perf = {}) {
    vi.stubEnv(VARIABLE, value);
    const lines = new Lines();
    const built = await listeningApp(adapterOf(adapter), {
      perf,
      metadata: { controllers: [TextController] },
      nest: { logger: lines },
    });
    return { ...built, lines: lines.all, line: lines.all.find((line) => line.startsWith('On: '))! };
  }

  it.each(['compression,upstream', ' Upstream , compression,, ', 'COMPRESSION,upstream,upstream'])(
    'switches the features off that it names: %s',
    async (value) => {
      const { url, line, ...built } = await start(value, { compression: { thresholdBytes: 10 } });
      const { headers } = await callAccepting(`${url}/text`, 'br');
      expect(headers['content-encoding']).toBeUndefined();
      const [record] = await recordsOf(built, 1);
      expect(record).toMatchObject({ route: '/text', status: 200, time: null });
      const { compression, routes } = built.app.get(PerfService).snapshot();
      expect([compression, routes.length]).toEqual([null, 1]);
      expect(line).toMatch(
        /^On: resources, event loop, latency, users, history, deferred work\. Off by NESTJS_PERF_OFF: /,
      );
    },
  );

  it('keeps the port of probes and scrapes with the event loop off', async () => {
    const { lines, url } = await start('eventLoop', { eventLoop: { port: 0 }, sinks: [prometheusSink()] });
    const [live] = lines.flatMap((line) => /GET (http:\S+\/live) /.exec(line)?.[1] ?? []);
    expect((await fetch(live!)).status).toBe(200);
    await (await fetch(`${url}/text`)).arrayBuffer();
    const metrics = await fetch(live!.replace('live', 'metrics'));
    expect([metrics.status, await metrics.text()]).toEqual([200, expect.stringContaining('http_route="/text"')]);
  });

  it("leaves deferred work on, which is the application's own, and says so", async () => {
    const { url, line, lines } = await start('defer,upstream');
    expect((await fetch(`${url}/text/deferred`)).status).toBe(200);
    await until('the work', () => ran > 0);
    expect(line).toContain('deferred work. Off by NESTJS_PERF_OFF: upstream.');
    expect(lines).toContain("NESTJS_PERF_OFF names `defer`, which stays on: it is the application's own work.");
  });

  it('changes nothing when it is empty', async () => {
    const { url, line } = await start('');
    expect((await callAccepting(`${url}/text`, 'br')).headers['content-encoding']).toBe('br');
    expect(line).not.toContain(VARIABLE);
  });

  it.each([{}, { enabled: false }])(
    'stops the boot with an unknown name, and says which there are: %j',
    async (perf) => {
      await expect(start('compression,eventloops', perf)).rejects.toThrow(
        'PERF_ERR_OPTION: The environment variable NESTJS_PERF_OFF names `eventloops`, which is no feature. It is a list of these, ' +
          'separated by commas: resources, eventLoop, upstream, latency, experiments, users, work, history, compression, defer, dashboard.',
      );
    },
  );
});
