import { appendFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlockRecord, RequestRef } from '../../src/index.js';
import { type Adapter, adapters } from '../fixtures/app.js';
import { BlockersProcess, markedLinesOf } from '../fixtures/blockers-process.js';
import { nodeBinaries } from '../fixtures/node-versions.js';
import { type Style, styles } from '../fixtures/styles.js';
import { Traffic } from '../fixtures/traffic.js';

const LEAST_SHOTS = 8;
const LONG = process.env['PERF_LONG'] !== undefined;
/** For `npm run bench -- blame`: every style on both adapters and both Nests, and a line of JSON for each set-up. */
const TABLE = process.env['PERF_BLAME_FILE'];
const ROUNDS = LONG ? 2 : 1;
/** A style is fired once more because the machine was busy with others so often at most, and for so long in a set-up. */
const PATIENCE = LONG || TABLE !== undefined ? { tries: 4, ms: 90_000 } : { tries: 2, ms: 8_000 };
const BLOCK_MS = 130;
/** Innocent requests of the culprit's own route; a queue must have some that wait. */
const SAME_ROUTE = [5, 9, 14, 20];
const SAME_QUEUE = [2, 3, 5, 6, 9, 14];
const INNOCENTS = ['', '-returned', '-intercepted', '-observable'].flatMap((kind, i) =>
  [3, 8, 19].map((waitMs) => `/innocent${kind}?ms=0&wait=${waitMs + i}`),
);
const OPENERS = ['/innocent-opener?ms=0&wait=60', '/innocent-opener?ms=0&wait=45'];
/** Causes of a busy machine: whoever is hit by them waits, the culprit as well. */
const OF_THE_MACHINE = new Set<BlockRecord['cause']>(['not-scheduled', 'pile-up']);
const LINE = markedLinesOf('styles.controller.ts').get('block');
const NEST11 = pathToFileURL(fileURLToPath(new URL('../../bench/deferred/nest11.mjs', import.meta.url))).href;

/** In the short run Nest 12 with interceptors on Fastify, and Nest 11 without on Express. */
const SETUPS = adapters
  .flatMap((adapter) => [12, 11].flatMap((nest) => [true, false].map((through) => ({ adapter, nest, through }))))
  .filter(({ nest, through }) => LONG || through === (nest === 12))
  .filter(({ adapter, through }) => LONG || TABLE !== undefined || through === (adapter === 'fastify'))
  .map((setup) => ({ ...setup, interceptors: setup.through ? 'with' : 'without' }));

/** In the short run each style has one adapter. */
const stylesOn = (adapter: Adapter): Style[] =>
  styles.filter(({ only }, i) => (only ?? (LONG || TABLE !== undefined ? adapter : adapters[i % 2])) === adapter);

interface Shot {
  style: Style;
  /** Of the request that blocks. */
  id: string;
  status: number;
  runDelayMs: number;
  /** All while it was fired. */
  blocks: readonly BlockRecord[];
  /** The longest of them: its own. */
  block: BlockRecord | undefined;
  /** What its own record says that it waited for others. */
  delayedMs: number;
}

/** The machine let the process run, by the kernel's counters and by what was seen of it: attribution can be asked for. */
const isFair = ({ runDelayMs, blocks }: Shot): boolean =>
  runDelayMs < 0.15 * BLOCK_MS && blocks.every(({ cause }) => !OF_THE_MACHINE.has(cause));
const isReported = ({ block }: Shot): boolean => block !== undefined && block.durationMs > 0.7 * BLOCK_MS;
const isNamed = ({ block, id }: Shot): boolean => block!.request?.id === id;
const innocentIn = (named: RequestRef | null, { id }: Shot): boolean => named !== null && named.id !== id;
/** An innocent is said to have blocked. */
const isWrong = (shot: Shot): boolean => shot.blocks.some(({ request }) => innocentIn(request, shot));
const suspectsInnocent = (shot: Shot): boolean => innocentIn(shot.block!.suspect, shot);
/** The culprit is said to have waited for a block that was its own. */
const isVictim = ({ block, id }: Shot): boolean => block!.delayed.some((delayed) => delayed.id === id);
const isCharged = ({ delayedMs }: Shot): boolean => delayedMs > 0.7 * BLOCK_MS;
const isLocated = ({ block }: Shot): boolean =>
  block!.location?.startsWith(`test/fixtures/styles.controller.ts:${LINE}:`) === true;

/** For the message of a failure: what was said of which style. */
function told(shots: readonly Shot[]): string {
  const lines = shots.flatMap(({ style, blocks, id }) =>
    blocks.map(({ cause, request, suspect }) => {
      const [named, suspected] = [request, suspect].map((ref) => (ref?.id === id ? 'the culprit' : ref?.url));
      return `${style.name}: request ${named ?? 'nobody'}, suspect ${suspected ?? 'nobody'}, ${cause}`;
    }),
  );
  return `\n${[...new Set(lines)].join('\n')}\n`;
}

for (const node of nodeBinaries()) {
  describe.each(SETUPS)(
    `blocks in every style of code on ${node.name}, Nest $nest, $adapter, $interceptors interceptors`,
    ({ adapter, nest, through }) => {
      let server: BlockersProcess;
      let traffic: Traffic;
      let patientUntilMs = 0;
      const shots: Shot[] = [];
      /** Of those, the ones that can be judged. */
      let fair: Shot[] = [];
      /** The same without those on shared queues. */
      let own: Shot[] = [];
      const fire = async (style: Style): Promise<Shot> => {
        await server.settle();
        server.blocks.length = 0;
        server.requests.length = 0;
        const id = `culprit-${shots.length}`;
        const delayBeforeMs = server.runDelayMs();
        const { status } = await traffic.get(`/${style.name}?ms=${BLOCK_MS}&wait=2`, { 'x-request-id': id });
        await server.settle();
        const runDelayMs = server.runDelayMs() - delayBeforeMs;
        const blocks = [...server.blocks];
        const block = blocks.toSorted((a, b) => b.durationMs - a.durationMs)[0];
        const { delayedMs = 0 } = server.requests.find((request) => request.id === id) ?? {};
        return { style, id, status, runDelayMs, blocks, block, delayedMs };
      };

      const fireAmongItsOwnKind = async (style: Style): Promise<void> => {
        const waits = style.shared !== undefined ? SAME_QUEUE : SAME_ROUTE;
        const same = waits.map((waitMs) => `/${style.name}?ms=0&wait=${waitMs}`);
        await traffic.loop([...INNOCENTS, ...same, ...(style.name.startsWith('pool') ? OPENERS : [])]);
        for (let round = 0; round < ROUNDS; round++) {
          for (let tries = 0; tries <= PATIENCE.tries; tries++) {
            const shot = await fire(style);
            shots.push(shot);
            if (isFair(shot) || performance.now() > patientUntilMs) break;
          }
        }
        await traffic.stop();
      };

      beforeAll(async () => {
        const execArgv = nest === 11 ? ['--import', NEST11] : [];
        const { execPath } = node;
        server = await BlockersProcess.start({
          server: 'styles.server',
          adapter,
          interceptors: through,
          execPath,
          execArgv,
        });
        traffic = new Traffic(server.port);
        for (let i = 0; i < 50; i++) await traffic.get(INNOCENTS[i % INNOCENTS.length]!);
        patientUntilMs = performance.now() + PATIENCE.ms;
        for (const style of stylesOn(adapter)) await fireAmongItsOwnKind(style);
        fair = shots.filter((shot) => isReported(shot) && isFair(shot));
        own = fair.filter(({ style }) => style.shared === undefined);
        const counts = {
          styles: stylesOn(adapter).length,
          blocks: shots.length,
          reported: shots.filter(isReported).length,
          fair: own.length,
          named: own.filter(isNamed).length,
          located: own.filter(isLocated).length,
          innocents: shots.filter((shot) => shot.style.shared !== 'unbound' && isWrong(shot)).length,
        };
        if (TABLE !== undefined)
          appendFileSync(TABLE, `${JSON.stringify({ node: node.name, nest, adapter, ...counts })}\n`);
      }, 600_000);
      afterAll(async () => {
        server.kill();
        await traffic.stop().catch(() => undefined);
        traffic.close();
      });

      it('are reported', () => {
        expect(shots.filter(({ status }) => status >= 500 || status === 404)).toEqual([]);
        const missed = shots.filter((shot) => !isReported(shot));
        expect(missed.length, missed.map(({ style }) => style.name).join(', ')).toBeLessThanOrEqual(
          0.05 * shots.length,
        );
        // The short run ends in time even where the machine is busy with others throughout.
        if (LONG) expect(fair.length).toBeGreaterThan(0.5 * shots.length);
      });

      it('never name an innocent request', () => {
        const wrong = shots.filter((shot) => shot.style.shared !== 'unbound' && isWrong(shot));
        expect(wrong, told(wrong)).toEqual([]);
      });

      it('never count the culprit among those who had to wait', () => {
        const victims = fair.filter((shot) => shot.style.shared !== 'unbound' && (isVictim(shot) || isCharged(shot)));
        expect(victims.length, told(victims)).toBe(0);
      });

      it('name the request that blocks, with its line', ({ skip }) => {
        // A handful of shots shows no share.
        if (own.length < LEAST_SHOTS) skip(`the machine let the process run through ${own.length} blocks only`);
        const others = own.filter((shot) => !isNamed(shot));
        expect(others.length, told(others)).toBeLessThanOrEqual((LONG ? 0 : 1) + 0.05 * own.length);
        const elsewhere = own.filter((shot) => !isLocated(shot));
        expect(elsewhere.length, told(elsewhere)).toBeLessThanOrEqual(1 + 0.05 * own.length);
      });

      it('suspect nobody but the request that blocks, or the one whose shared connection it uses', () => {
        const mistaken = own.filter(suspectsInnocent);
        expect(mistaken.length, told(mistaken)).toBe(0);
      });
    },
  );
}
