import { Controller, Get, Param, Res } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { PerfService } from '../../src/index.js';
import { adapterOf, either, type Adapter } from '../fixtures/app.js';
import { closeApps, listeningApp, settled } from '../fixtures/build-app.js';
import { parseExposition, samplesOf } from '../fixtures/exposition.js';
import { call } from '../fixtures/http-client.js';

/** A proxy: it passes on what its upstream has answered. */
@Controller('proxy')
class ProxyController {
  @Get(':name/:status')
  pass(@Param('status') status: string, @Res() response: { status: (code: number) => { send(body: string): void } }) {
    response.status(Number(status)).send('');
  }
}

afterEach(closeApps);

const start = (adapter: Adapter) =>
  listeningApp(adapterOf(adapter), {
    perf: { eventLoop: false, history: false, sinks: [prometheusSink()] },
    metadata: { controllers: [ProxyController] },
  });

describe.each(either('express'))('statuses that are registered nowhere, on %s', (adapter) => {
  it('are counted as their class beyond a few, in metrics and snapshot; their records are true', async () => {
    const { url, ...built } = await start(adapter);
    const statuses = Array.from({ length: 200 }, (_, i) => 200 + 2 * i);
    for (const status of statuses) await call(`${url}/proxy/a/${status}`);
    await settled(built);
    const scrape = (await call(`${url}/metrics`)).text;
    const counts = samplesOf(parseExposition(scrape), 'http_server_request_duration_seconds_count');
    // About 30 of them are registered.
    expect(counts.length).toBeLessThan(60);
    expect(counts.reduce((sum, { value }) => sum + value, 0)).toBe(200);
    const ofClass = (first: number): number =>
      counts.reduce((sum, { labels, value }) => {
        return labels['http_response_status_code']!.startsWith(String(first)) ? sum + value : sum;
      }, 0);
    expect([2, 3, 4, 5].map(ofClass)).toEqual([50, 50, 50, 50]);
    const [row] = built.app.get(PerfService).snapshot().routes;
    expect(row).toMatchObject({
      count: 200,
      errors: 50,
      statuses: { '2xx': 50, '3xx': 50, '4xx': 50, '5xx': 50 },
    });
    const records = built.sink.records.filter((record) => record.kind === 'request');
    expect(records.map(({ status }) => status).sort((a, b) => a - b)).toEqual(statuses);
  });
});
