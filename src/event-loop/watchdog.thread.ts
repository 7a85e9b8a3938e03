import type * as Beat from './beat.js';
import type { Timing } from './event-loop.options.js';
import type { isUserFrame } from './frame.js';
import type { Message } from './interrupt/probe.js';
import type { Mappings, Position, SourceMaps } from './source-maps.js';

/** What the watchdog thread is given. Plain data: it crosses to another thread. */
export interface WatchdogData {
  readonly words: Int32Array;
  /** The thread's function can import nothing. */
  readonly beat: typeof Beat;
  readonly timing: Timing;
  /** Milliseconds on the kernel's monotonic clock when the main thread's `performance.now()` was 0. */
  readonly originMs: number;
  /** The property of the main context's global object that holds the probe. */
  readonly probeName: string;
  /** The main thread has maps of its own of what a loader made. */
  readonly loaderMaps: boolean;
}

/** Asks where positions are in the sources. */
export interface LocationsAsked {
  readonly id: number;
  readonly positions: readonly Position[];
}
/** What the thread tells. */
export type Told =
  | { readonly id: number; readonly locations: readonly (string | null)[] }
  /** Looks fail one after the other: the inspector does not do here what it must. */
  | { readonly reason: string }
  /** It has stopped and will look no more: it waits to be told to end. */
  | { readonly stopped: true };

/**
 * The watchdog thread: when the beat goes stale it has one expression evaluated on top of the blocked stack, and disconnects.
 * It is started from its own source text (see watchdog-source.ts): it must use nothing but what it is given.
 */
export function watchdogThread(Maps: typeof SourceMaps, Decoded: typeof Mappings, isUsers: typeof isUserFrame): void {
  const { parentPort, receiveMessageOnPort, workerData } = process.getBuiltinModule('node:worker_threads');
  const { Session } = process.getBuiltinModule('node:inspector');
  const fs = process.getBuiltinModule('node:fs');
  const { words, beat, timing, originMs, probeName, loaderMaps } = workerData as WatchdogData;
  /** The watchdog's own polling while no request is in flight. */
  const idlePollMs = 1_000;
  /** After so long a block is told on stderr while it lasts. */
  const hangMs = 1_000;
  /** So many looks that fail in a row are told. */
  const maxFailedLooks = 3;
  /** Of a bundle of Nest and all it needs they are 3 MB. */
  const maxMappingBytes = 6_000_000;
  const workingDirectory = process.cwd();
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  const ownStartMs = nowMs();
  const schedstatFd = openSchedstat();
  const schedstatText = Buffer.alloc(96);

  let watchedSeq = Atomics.load(words, beat.SEQ);
  let nextLookMs = 0;
  const maxTokens = 3 * timing.looksPerSecond;
  let tokens = maxTokens;
  let refilledMs = ownStartMs;
  let saidAtMs = 0;
  /** Since the loop last turned: a process that was stopped has blocked nothing. */
  let ownLateMs = 0;
  let lastLateMs = 0;
  let failedLooks = 0;
  let hasLooked = false;
  /** Until when the loop counts as turning though no beat says so, as under fake timers: looks met no code that runs. */
  let idleMs = -Infinity;
  let maps: SourceMaps | null = null;
  let seen: Message | null = null;
  /** The main thread's run delay at the last poll of a block; null while it turns. */
  let runDelayUs: number | null = null;

  watch();

  /** Main-thread monotonic milliseconds. */
  function nowMs(): number {
    return Number(process.hrtime.bigint()) / 1e6 - originMs;
  }

  function watch(): void {
    for (;;) {
      const current = Atomics.load(words, beat.MODE);
      if (current === beat.STOPPED) return stop();
      const waitMs = current === beat.AWAKE ? untilSuspicious() : idlePollMs;
      const beforeMs = nowMs();
      lastLateMs = 0;
      if (Atomics.wait(words, beat.MODE, current, waitMs) === 'timed-out') account(beforeMs, waitMs);
      tellLocations();
      Atomics.add(words, beat.POLLS, 1);
      // A look is answered through this thread's own event loop, so the loop here must be left for it.
      if (look()) return;
    }
  }

  function tellLocations(): void {
    for (;;) {
      const asked = receiveMessageOnPort(parentPort!);
      if (asked === undefined) return;
      const { id, positions } = asked.message as LocationsAsked;
      tell({ id, locations: positions.map(locationOf) });
    }
  }

  /** No wake-up before one can tell anything: they are what this thread costs. */
  function untilSuspicious(): number {
    const leftMs = timing.suspectMs - staleOf(nowMs());
    return leftMs > 0 ? leftMs + 0.2 : timing.tickMs;
  }

  /** Node aborts when the main thread cleans up after a look while this thread ends: so it says so, and waits. */
  function stop(): void {
    if (schedstatFd !== null) fs.closeSync(schedstatFd);
    if (!hasLooked) return;
    parentPort!.on('message', (message: unknown) => {
      if (message === 'end') parentPort!.close();
    });
    tell({ stopped: true });
  }

  function tell(told: Told): void {
    parentPort!.postMessage(told);
  }

  /** Own lateness: how much of a block was the machine's fault. */
  function account(beforeMs: number, waitMs: number): void {
    lastLateMs = Math.max(0, nowMs() - beforeMs - waitMs);
    ownLateMs += lastLateMs;
    if (lastLateMs > 1) Atomics.add(words, beat.STARVED_US, Math.round(lastLateMs * 1000));
  }

  /** Adds what the main thread has stood in the run queue since the last call, while it stands still. */
  function accountRunDelay(standsStill: boolean): void {
    if (schedstatFd === null || (!standsStill && runDelayUs === null)) return;
    try {
      const length = fs.readSync(schedstatFd, schedstatText, 0, schedstatText.length, 0);
      // "time on CPU, time in the run queue, slices", in nanoseconds: Documentation/scheduler/sched-stats.rst
      const nowUs = Number(schedstatText.toString('latin1', 0, length).split(' ')[1]) / 1000;
      if (runDelayUs !== null) Atomics.add(words, beat.RUN_DELAY_US, Math.round(nowUs - runDelayUs));
      runDelayUs = standsStill ? nowUs : null;
    } catch {
      // Classification has one witness less.
      runDelayUs = null;
    }
  }

  /** Looks at the main thread when it is time; true when a look is under way. */
  function look(): boolean {
    const now = nowMs();
    const seq = Atomics.load(words, beat.SEQ);
    if (seq !== watchedSeq) {
      watchedSeq = seq;
      nextLookMs = 0;
      saidAtMs = 0;
      // It may have turned before that, unseen.
      ownLateMs = Math.min(lastLateMs, staleOf(now));
      seen = null;
    }
    const staleMs = staleOf(now);
    const suspectMs =
      Atomics.load(words, beat.MODE) === beat.AWAKE ? timing.suspectMs : timing.idleTickMs + timing.suspectMs;
    accountRunDelay(staleMs >= suspectMs);
    if (staleMs < suspectMs) return false;
    // Below the probe there is only the evaluated script's own top-level frame.
    if (seen?.frames?.at(-2)?.name === 'perfProbe') idleMs = now;
    if (now < nextLookMs || !takeToken(now)) {
      sayWhileItLasts(now);
      return false;
    }
    // Ever rarer, so that a long block is looked at a few dozen times, and its last look still lies near its end. Not
    // quite regular: requests that take turns in step with the looks would otherwise be blamed for one another.
    nextLookMs = now + Math.max(timing.tickMs, staleMs * 0.15) * (0.85 + Math.random() * 0.3);
    ask(seq);
    return true;
  }

  function staleOf(now: number): number {
    const units = (now * beat.UNITS_PER_MS - Atomics.load(words, beat.BEAT_AT)) | 0;
    return units / beat.UNITS_PER_MS;
  }

  function takeToken(now: number): boolean {
    tokens = Math.min(maxTokens, tokens + ((now - refilledMs) / 1000) * timing.looksPerSecond);
    refilledMs = now;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  }

  function ask(seq: number): void {
    hasLooked = true;
    const session = new Session();
    let beforeMs = nowMs();
    // Keeps this thread alive and watching while the main thread is in a native call and cannot answer.
    const waiting = setInterval(() => {
      account(beforeMs, timing.tickMs);
      beforeMs = nowMs();
      accountRunDelay(Atomics.load(words, beat.SEQ) === seq);
      Atomics.add(words, beat.POLLS, 1);
      if (Atomics.load(words, beat.MODE) === beat.STOPPED) answered(null);
      else if (Atomics.load(words, beat.SEQ) === seq) sayWhileItLasts(beforeMs);
    }, timing.tickMs);
    let done = false;
    const answered = (answer: Message | null, failure: unknown = null): void => {
      if (done) return;
      if (answer !== null) failedLooks = 0;
      else if (failure !== null) lookFailed(failure);
      done = true;
      clearInterval(waiting);
      session.disconnect();
      if (answer?.ok === true && seq === watchedSeq) seen = answer;
      // Not in the turn of the disconnect: ending a thread there has aborted processes.
      setImmediate(watch);
    };
    try {
      session.connectToMainThread();
      session.post(
        'Runtime.evaluate',
        { expression: expressionOf(seq, nowMs()), returnByValue: true },
        (error, reply) =>
          answered((reply as { result?: { value?: Message } } | undefined)?.result?.value ?? null, error),
      );
    } catch (error) {
      answered(null, error);
    }
  }

  /** One may be lost while somebody else's session goes away, or the main thread ends. */
  function lookFailed(failure: unknown): void {
    failedLooks += 1;
    if (failedLooks !== maxFailedLooks) return;
    tell({ reason: failure instanceof Error ? failure.message : 'no answer' });
  }

  /**
   * Calls nothing but the probe. Nothing may be thrown out of it: the inspector would format the error's stack on the spot, with
   * the application's formatter. (Where not even this can begin, at the very end of the stack, the inspector does so.)
   */
  function expressionOf(seq: number, at: number): string {
    return (
      `try{(function perfProbe(probe){const m={seq:${seq},at:${at},ok:false};` +
      `if(probe!==undefined)probe(m);return m})(this['${probeName}'])}catch{}`
    );
  }

  /** A block that never ends is never recorded; so it is told while it lasts, past the main thread's own streams. */
  function sayWhileItLasts(now: number): void {
    const staleMs = Math.min(staleOf(now), now - idleMs);
    if (staleMs - ownLateMs < hangMs || (saidAtMs > 0 && staleMs < saidAtMs * 5)) return;
    saidAtMs = staleMs;
    const who = seen?.handler === undefined ? (seen?.method ?? '') : `${seen.method} ${seen.route} (${seen.handler})`;
    const frames = seen?.frames ?? [];
    // The evaluated script's own top-level frame stands below its function.
    const frame = frames
      .slice(frames.findIndex(({ name }) => name === 'perfProbe') + 2)
      .find((one) => isUsers(one, null));
    const where = frame === undefined ? '' : ` at ${locationOf(frame)} (${frame.name ?? 'anonymous'})`;
    const ms = Math.round(staleMs);
    const said =
      who === ''
        ? `The event loop has been blocked for ${ms} ms and still is`
        : `${who} blocks the event loop for ${ms} ms and still does`;
    writeToStderr(`[Perf] ${said}${where}\n`);
  }

  function locationOf({ file, line, column }: Position): string | null {
    try {
      maps ??= new Maps(workingDirectory, maxMappingBytes, Decoded);
      const location = maps.locationOf({ file, line, column });
      return loaderMaps && Maps.isTypeScript(file ?? '') ? location!.replace(/:\d+:\d+$/, '') : location;
    } catch {
      // The line is worth more than its map; an error here would end the watchdog in the middle of a hang.
      return file === null ? null : `${file}:${line}:${column}`;
    }
  }

  function writeToStderr(line: string): void {
    for (let attempt = 0; attempt < 20; attempt++) {
      try {
        fs.writeSync(2, line);
        return;
      } catch (error) {
        // A full pipe is worth waiting for; a closed one is not.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        Atomics.wait(sleeper, 0, 0, 5);
      }
    }
  }

  function openSchedstat(): number | null {
    try {
      return fs.openSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, 'r');
    } catch {
      // Only Linux has it.
      return null;
    }
  }
}
