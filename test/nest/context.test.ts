import { setTimeout as delay } from 'node:timers/promises';
import { Body, Controller, Get, Inject, Injectable, Param, Post, Scope } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { defer, PerfService } from '../../src/index.js';
import { byNest, startApp } from '../fixtures/app.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

@Injectable()
class RowsService {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}
  async load(rows: number): Promise<number> {
    await delay(rows % 7);
    this.perf.note({ rows });
    await new Promise((resolve) => setImmediate(resolve));
    this.perf.note({ bytes: rows * 10 });
    return rows;
  }
}

@Controller('rows')
class RowsController {
  constructor(@Inject(RowsService) private readonly rows: RowsService) {}
  @Get(':rows')
  load(@Param('rows') rows: string) {
    return this.rows.load(Number(rows));
  }
  @Get(':rows/deferred')
  async loadAgain(@Param('rows') rows: string) {
    defer(() => this.rows.load(1));
    return this.rows.load(Number(rows));
  }
  @Post(':rows')
  create(@Param('rows') rows: string, @Body() _body: unknown) {
    return this.rows.load(Number(rows));
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedController {
  constructor(@Inject(RowsService) private readonly rows: RowsService) {}
  @Get(':rows')
  load(@Param('rows') rows: string) {
    return this.rows.load(Number(rows));
  }
}

const metadata = { controllers: [RowsController, ScopedController], providers: [RowsService] };

describe.each(byNest('express'))('the context store on %s', (adapter) => {
  it('knows the current request through awaits, 100 at a time, never mixed', async () => {
    const running = await startApp(adapter, { metadata, perf: {} });
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        fetch(`${running.url}/${i % 2 === 0 ? 'rows' : 'scoped'}/${i}`, {
          headers: { 'x-request-id': `request-${i}` },
        }),
      ),
    );
    const records = await running.requests();
    await running.close();
    expect(records).toHaveLength(100);
    for (const { id, note, route, handler } of records) {
      const rows = Number(id.slice('request-'.length));
      expect(note).toEqual({ rows, bytes: rows * 10 });
      expect([route, handler]).toEqual(
        rows % 2 === 0 ? ['/rows/:rows', 'RowsController.load'] : ['/scoped/:rows', 'ScopedController.load'],
      );
    }
  });

  it('knows the request behind a body that was read', async () => {
    const running = await startApp(adapter, { metadata, perf: { eventLoop: false } });
    const body = JSON.stringify({ text: 'x'.repeat(60_000) });
    const headers = { 'content-type': 'application/json' };
    expect((await fetch(`${running.url}/rows/3`, { method: 'POST', body, headers })).status).toBe(201);
    const [record] = await running.requests();
    await running.close();
    expect(record?.note).toEqual({ rows: 3, bytes: 30 });
  });

  it('notes nothing more in a record that is written: deferred work has the context of its request', async () => {
    const running = await startApp(adapter, { metadata });
    await (await fetch(`${running.url}/rows/3/deferred`)).text();
    const [record] = await running.requests();
    await running.close();
    expect(record?.note).toEqual({ rows: 3, bytes: 30 });
  });

  it('outside a request note() records nothing, and logs that once', async () => {
    const warnings: string[] = [];
    const running = await startApp(adapter, {
      metadata,
      nest: { logger: { log: () => {}, error: () => {}, warn: (message: string) => void warnings.push(message) } },
    });
    for (let i = 0; i < 2; i++) running.app.get(PerfService).note({ rows: 1 });
    await running.close();
    expect(warnings.filter((message) => message.includes('note()') && !message.includes('more since'))).toEqual([
      'PerfService.note() outside a request records nothing.',
    ]);
  });
});
