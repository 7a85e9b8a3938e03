import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject, Injectable, Module, Post, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { freePort } from '../../../scripts/redis.mjs';
import { cache, Cached } from '../../../src/entries/cache.js';
import { prometheusSink } from '../../../src/entries/prometheus.js';
import { DeferWork, PerfInterceptor, PerfModule } from '../../../src/index.js';

const has = (tool: string): boolean => spawnSync(tool, ['--version']).status === 0;
const hasPromtool = has('promtool');
const long = process.env['PERF_LONG'] === '1';
const why = !hasPromtool
  ? 'no promtool on PATH; Debian has it in the package prometheus'
  : 'with PERF_LONG=1, and prometheus on PATH';

@Injectable()
class Catalogue {
  @Cached({ ttlMs: 1_000 })
  async product(id: string) {
    return { id };
  }
}

@Controller()
class ApiController {
  constructor(@Inject(Catalogue) private readonly catalogue: Catalogue) {}

  @Get('feed')
  feed() {
    return Array.from({ length: 200 }, (_, i) => ({ i, text: 'the same words again' }));
  }

  @Get('failing')
  failing(): never {
    throw new Error('on purpose');
  }

  @Get('blocking')
  async blocking() {
    const endsAt = performance.now() + 150;
    while (performance.now() < endsAt);
    return {};
  }

  /** Its clients leave. */
  @Get('never')
  never() {
    return new Promise(() => undefined);
  }

  /** Nobody listens there. */
  @Get('upstream')
  async upstream() {
    return {
      answered: await fetch('http://127.0.0.1:2/').then(
        () => true,
        () => false,
      ),
    };
  }

  @Get('cached')
  cached() {
    return this.catalogue.product('1');
  }

  @Post('orders')
  @DeferWork(() => delay(5))
  order() {
    return {};
  }
}

@WebSocketGateway()
@UseInterceptors(PerfInterceptor)
class EchoGateway {
  @SubscribeMessage('echo')
  echo() {
    return { event: 'echo', data: 1 };
  }
}

@Module({
  imports: [
    PerfModule.forRoot({
      sinks: [prometheusSink()],
      extensions: [cache()],
      // A machine without limits has no such series.
      resources: { intervalMs: 1_000, cpuLimitCores: 4, memoryLimitBytes: 2 ** 33 },
    }),
  ],
  controllers: [ApiController],
  providers: [EchoGateway, Catalogue],
})
class ApiModule {}

interface Answer {
  status: string;
  error?: string;
  data: { result: { metric: Record<string, string>; value: [number, string] }[] };
}

describe('alert rules and scrape configuration', () => {
  it.skipIf(!hasPromtool)(`are what promtool takes${hasPromtool ? '' : ` (skipped: ${why})`}`, () => {
    for (const [what, file] of [
      ['rules', 'alerts.yml'],
      ['config', 'prometheus.yml'],
    ] as const) {
      const checked = spawnSync('promtool', ['check', what, `examples/prometheus/${file}`], { encoding: 'utf8' });
      expect(checked.stderr).toBe('');
      expect(checked.stdout).toContain('SUCCESS');
    }
  });
});

describe.skipIf(!long || !has('prometheus'))(
  `a real Prometheus${long && has('prometheus') ? '' : ` (skipped: ${why})`}`,
  { timeout: 180_000 },
  () => {
    let app: NestFastifyApplication;
    let url: string;
    let socket: WebSocket;
    let server: ChildProcess;
    let folder: string;
    let traffic: Promise<void>;
    let ended = false;
    let port: number;

    beforeAll(async () => {
      app = await NestFactory.create<NestFastifyApplication>(ApiModule, new FastifyAdapter(), { logger: false });
      app.useWebSocketAdapter(new WsAdapter(app));
      await app.listen(0, '127.0.0.1');
      url = await app.getUrl();
      socket = new WebSocket(url.replace('http', 'ws'));
      await once(socket, 'open');
      folder = mkdtempSync(join(tmpdir(), 'prometheus-'));
      const config = {
        global: { scrape_interval: '1s', evaluation_interval: '1s' },
        rule_files: [resolve('examples/prometheus/alerts.yml')],
        scrape_configs: [{ job_name: 'api', static_configs: [{ targets: [url.replace('http://', '')] }] }],
      };
      writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
      port = await freePort();
      server = spawn('prometheus', [
        `--config.file=${folder}/prometheus.yml`,
        `--storage.tsdb.path=${folder}/data`,
        `--web.listen-address=127.0.0.1:${port}`,
      ]);
      traffic = call();
    }, 60_000);

    afterAll(async () => {
      ended = true;
      await traffic;
      socket.terminate();
      const exited = once(server, 'exit');
      server.kill('SIGTERM');
      await exited;
      await app.close();
      rmSync(folder, { recursive: true, force: true });
    });

    async function call(): Promise<void> {
      while (!ended) {
        for (const path of ['/feed', '/cached', '/failing', '/blocking', '/upstream', '/nowhere']) {
          await (await fetch(url + path, { headers: { 'accept-encoding': 'gzip' } })).arrayBuffer();
        }
        socket.send(JSON.stringify({ event: 'echo' }));
        await (await fetch(`${url}/orders`, { method: 'POST' })).arrayBuffer();
        await fetch(`${url}/never`, { signal: AbortSignal.timeout(50) }).catch(() => undefined);
        await delay(100);
      }
    }

    const query = async (expr: string): Promise<Answer> => {
      const asked = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expr)}`);
      return (await asked.json()) as Answer;
    };

    it('answers every query of the dashboard with data', async () => {
      const queries = dashboardQueries();
      expect(queries.length).toBeGreaterThan(15);
      for (const expr of queries) {
        await expect
          .poll(async () => (await query(expr).catch(() => null))?.data.result.length ?? 0, {
            timeout: 60_000,
            message: expr,
          })
          .toBeGreaterThan(0);
      }
    });

    it('evaluates every alert rule without an error', async () => {
      type Rules = { data: { groups: { rules: { name: string; health: string; lastError?: string }[] }[] } };
      const rules = async () => {
        const answer = (await (await fetch(`http://127.0.0.1:${port}/api/v1/rules`)).json()) as Rules;
        return answer.data.groups.flatMap((group) => group.rules);
      };
      await expect.poll(async () => (await rules()).filter(({ health }) => health !== 'ok')).toEqual([]);
      expect((await rules()).length).toBeGreaterThan(5);
    });
  },
);

/** As Grafana would send them. CPU periods exist in a container with a quota only. */
function dashboardQueries(): string[] {
  const { panels } = JSON.parse(readFileSync('examples/prometheus/grafana-dashboard.json', 'utf8')) as {
    panels: { targets?: { expr: string }[] }[];
  };
  return panels
    .flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    .filter((expr) => !expr.includes('_periods_total'))
    .map((expr) => expr.replaceAll('$__rate_interval', '10s').replaceAll(/\$(job|instance)/g, '.*'));
}
