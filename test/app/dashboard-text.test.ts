import { Controller, Get, type INestApplication, Logger, ServiceUnavailableException } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { HistoryReader } from '../../src/ports/history.js';
import { openedText } from '../../src/history/text.js';
import type { Assessment } from '../../src/history/verdicts/assess.js';
import { METRICS } from '../../src/history/verdicts/metrics.js';
import type { PerfModuleOptions } from '../../src/index.js';
import { closeApps, recordsOf } from '../fixtures/build-app.js';
import { dataOf, startDashboard, textOf } from '../fixtures/dashboard.js';
import { verdictRecord } from '../fixtures/records.js';

@Controller('users')
class UsersController {
  @Get(':id')
  one() {
    return { name: 'Ada' };
  }
  @Get(':id/broken')
  broken(): never {
    throw new ServiceUnavailableException();
  }
}

afterEach(async () => {
  await closeApps();
  Logger.overrideLogger(false);
});

const start = (perf: PerfModuleOptions = {}) =>
  startDashboard('fastify', { metadata: { controllers: [UsersController] }, perf });

/** A verdict of one user, as a history would tell it. */
function slowFor(app: INestApplication, name: string): void {
  const moved = [{ route: 'GET /users/:id', rule: METRICS[1]!, before: 5, now: 7 }] as unknown as readonly Assessment[];
  const scope = { scope: 'users', name, detail: '1 of 214' } as const;
  const text = openedText({ kind: 'worse', since: 0, scope, moved, because: [], against: 'day', release: null });
  const { verdict } = verdictRecord({ scope: 'users', who: name, text });
  vi.spyOn(app.get(HistoryReader), 'verdicts').mockReturnValue([verdict]);
}

describe('the text of the dashboard', () => {
  it('says what is off, and does not take what is not measured for nothing', async () => {
    const { url, token } = await start({ latency: false, eventLoop: false });
    for (let i = 0; i < 5; i++) await fetch(`${url}/users/7/broken`);
    const text = await textOf(url, token);
    expect(text).toMatch(/^– requests\/s · – errors\/s · p95 –$/m);
    expect(text).toMatch(/^NOW\nNothing is known to be wrong\.$/m);
    expect(text).toMatch(/^REQUESTS\noff$/m);
    expect(text).toMatch(/^BLOCKS\noff$/m);
    expect((await dataOf(url, token)).totals).toBeNull();
  });

  it('comes to terminals, on which names cannot act', async () => {
    const running = await start({ unit: () => ({ userId: '\u001b[31mred\u009b' }) });
    await fetch(`${running.url}/users/7`);
    await recordsOf(running, 1);
    const authorization = `Bearer ${running.token}`;
    for (const headers of [{ accept: 'text/plain' }, { accept: '*/*', 'user-agent': 'curl/8.5.0' }]) {
      const response = await fetch(`${running.url}/perf`, { headers: { ...headers, authorization } });
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
      const text = await response.text();
      expect(text).toMatch(/^NOW\nNothing is wrong\.|^NOW\n[!-] /m);
      expect(text).toMatch(/^route +count .*\nGET \/users\/:id +1 /m);
      expect(text).toContain('\\u001b[31mred\\u009b');
      // oxlint-disable-next-line no-control-regex
      expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    }
  });

  it('is at the address of the JSON too, for who asks for text alone', async () => {
    const { url, token } = await start();
    const typeFor = async (headers: Record<string, string>): Promise<string | null> =>
      (await fetch(`${url}/perf/data`, { headers: { ...headers, authorization: `Bearer ${token}` } })).headers.get(
        'content-type',
      );
    expect(await typeFor({ accept: 'text/plain' })).toBe('text/plain; charset=utf-8');
    for (const headers of [
      { accept: '*/*', 'user-agent': 'curl/8.5.0' },
      { accept: 'application/json, text/plain, */*' },
    ])
      expect(await typeFor(headers)).toBe('application/json; charset=utf-8');
  });

  it('hides user ids where that is asked for, as the JSON does', async () => {
    const dashboard = { redactUsers: true };
    const running = await start({ dashboard, unit: () => ({ userId: 'ada@example.org' }) });
    slowFor(running.app, 'ada@example.org');
    await fetch(`${running.url}/users/7`);
    await recordsOf(running, 1);
    const data = await dataOf(running.url, running.token, '?route=1');
    expect(data.sections.users).toMatchObject([{ unit: expect.stringMatching(/^[0-9a-f]{16}$/), count: 1 }]);
    expect(JSON.stringify(data)).not.toContain('ada@example.org');
    expect(data.sections.now[0]!.text).toContain(`; for user ${data.sections.users[0]!.unit} (1 of 214).`);
    const text = await textOf(running.url, running.token);
    expect(text).toContain('for user ');
    expect(text).not.toContain('ada@example.org');
  });
});
