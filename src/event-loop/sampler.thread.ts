import type { KernelTexts } from '../ports/kernel-files.js';
import type { Description } from './interrupt/probe.js';
import type { Frame, isApplicationFrame } from './sample.js';
import type { FilesRequest, LocationsRequest, SamplerThreadData, ThreadMessage } from './sampler-messages.js';
import type { Position, SourceLines } from './source-lines.js';
import type { LoopHolder } from './witness.thread.js';

/** The sampler's thread: evaluates one expression on top of the main thread's stack. It starts from its own text (see sampler-source.ts), without imports. */
export function samplerThread(Lines: typeof SourceLines, isApplications: typeof isApplicationFrame): void {
  const { parentPort, receiveMessageOnPort, workerData } = process.getBuiltinModule('node:worker_threads');
  const { Session } = process.getBuiltinModule('node:inspector');
  const fs = process.getBuiltinModule('node:fs');
  const { words, beat, timing, originMs, probeName, workingDirectory, reportsHangs, loaderMaps, witness } =
    workerData as SamplerThreadData;
  const { WORD, MODE, UNITS_PER_MS } = beat;
  /** Without requests the main thread beats too seldom to show that it is blocked: its CPU time does. */
  const parkedPollMs = 200;
  const hotCpuMs = 10;
  const hotShare = 0.3;
  const hangMs = 1_000;
  const maxFailedSamples = 3;
  const intervalShareOfAge = 0.02;
  const maxMappingBytes = 6_000_000;
  // Constant text: V8 compiles it once. An error must not leave it: the inspector would format its stack on the spot, with the
  // application's formatter.
  const expression = `try{this[${JSON.stringify(probeName)}]?.()}catch{}`;
  const lines = new Lines(workingDirectory, maxMappingBytes);
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  let schedstatFd = -1;
  try {
    schedstatFd = fs.openSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, 'r');
  } catch {
    // Only Linux has it.
  }
  const schedstatText = Buffer.alloc(96);

  let watchedSeq = Atomics.load(words, WORD.seq);
  let nextDueMs = Infinity;
  let nextSampleMs = 0;
  let reportedMs = 0;
  /** How late this thread woke, and the sum since the loop last turned: a process that was stopped has blocked nothing. */
  let lateMs = 0;
  let ownLateMs = 0;
  let failedSamples = 0;
  let hasSampled = false;
  /** Until when the loop counts as turning though no beat shows it, as under fake timers: samples met no code. */
  let idleMs = -Infinity;
  let seen: Description | null = null;
  let usage = { atMs: nowMs(), ...readUsage() };
  let [spentMs, passedMs] = [0, 0];
  let isHot = false;
  let isWorking = false;

  Atomics.store(words, WORD.started, 1);
  watch();

  function nowMs(): number {
    return Number(process.hrtime.bigint()) / 1e6 - originMs;
  }

  function watch(): void {
    for (;;) {
      const mode = Atomics.load(words, WORD.mode);
      if (mode === MODE.stopped) return stop();
      const waitMs = mode === MODE.awake ? untilNext() : isHot ? timing.tickMs : parkedPollMs;
      const dueMs = nowMs() + waitMs;
      account(Atomics.wait(words, WORD.mode, mode, waitMs) === 'timed-out' ? dueMs : Infinity);
      answerRequests();
      // A sample is answered through this thread's own event loop, so this loop must be left for it.
      if (sample()) return;
    }
  }

  function answerRequests(): void {
    for (;;) {
      const received = receiveMessageOnPort(parentPort!);
      if (received === undefined) return;
      const request = received.message as LocationsRequest | FilesRequest;
      const { id } = request;
      const answer: ThreadMessage =
        'paths' in request ? { id, files: read(request.paths) } : { id, locations: request.positions.map(locate) };
      parentPort!.postMessage(answer);
    }
  }

  function read(paths: readonly string[]): KernelTexts {
    const [atMs, cpu, texts] = [nowMs(), process.cpuUsage(), new Map<string, string>()];
    for (const path of paths) {
      try {
        texts.set(path, fs.readFileSync(path, 'utf8'));
      } catch {
        texts.set(path, '');
      }
    }
    return { atMs, cpu, rssBytes: residentBytes(), texts };
  }

  /** Node opens a file for it. */
  function residentBytes(): number {
    try {
      return process.memoryUsage.rss();
    } catch {
      return process.resourceUsage().maxRSS * 1_024;
    }
  }

  /** Wake-ups are what this thread costs: none before there can be something to do. */
  function untilNext(): number {
    const now = nowMs();
    const staleMs = measureStale(now);
    const checkMs =
      staleMs >= timing.suspectMs ? Math.min(timing.suspectMs, nextSampleMs - now) : timing.suspectMs - staleMs;
    return Math.max(0.2, Math.min(checkMs, nextDueMs - now) + 0.2);
  }

  /** Node aborts when the main thread cleans up after a sample while this thread ends: so it announces its end, and waits. */
  function stop(): void {
    if (schedstatFd >= 0) fs.closeSync(schedstatFd);
    if (!hasSampled) return;
    parentPort!.on('message', (message: unknown) => {
      if (message === 'end') parentPort!.close();
    });
    parentPort!.postMessage({ stopped: true } satisfies ThreadMessage);
  }

  /** Adds up what the machine took: this thread woke late, or the main thread was in the run queue meanwhile. */
  function account(dueMs: number): void {
    const now = nowMs();
    const before = usage;
    usage = { atMs: now, ...readUsage() };
    [spentMs, passedMs] = [usage.cpuMs - before.cpuMs, now - before.atMs];
    lateMs = Math.max(0, now - dueMs);
    ownLateMs += lateMs;
    const lostMs = Math.max(lateMs > 1 ? lateMs : 0, usage.queuedMs - before.queuedMs);
    Atomics.add(words, WORD.lostUs, Math.round(1_000 * lostMs));
  }

  function readUsage(): { cpuMs: number; queuedMs: number } {
    try {
      // "time on CPU, time in the run queue, slices", in nanoseconds: Documentation/scheduler/sched-stats.rst
      const length = fs.readSync(schedstatFd, schedstatText, 0, schedstatText.length, 0);
      const [cpu, queued] = schedstatText.toString('latin1', 0, length).split(' ');
      return { cpuMs: Number(cpu) / 1e6, queuedMs: Number(queued) / 1e6 };
    } catch {
      const { user, system } = process.cpuUsage();
      return { cpuMs: (user + system) / 1_000, queuedMs: 0 };
    }
  }

  /** Draws the first moment as in a schedule that has long been running: a sample at once would always meet the first request. */
  function beginSchedule(now: number): void {
    nextDueMs = now + (1_000 / Atomics.load(words, WORD.rate)) * Math.sqrt(0.25 + 2 * Math.random()) * Math.random();
  }

  function countDue(now: number): boolean {
    if (nextDueMs > now) return false;
    const intervalMs = 1_000 / Atomics.load(words, WORD.rate);
    if (now - nextDueMs > 10 * intervalMs) beginSchedule(now);
    while (nextDueMs <= now) {
      Atomics.add(words, WORD.due, 1);
      // Intervals are random: requests may take turns in step with regular samples.
      nextDueMs += intervalMs * (0.5 + Math.random());
    }
    return true;
  }

  function sample(): boolean {
    const now = nowMs();
    const isAwake = Atomics.load(words, WORD.mode) === MODE.awake;
    const seq = Atomics.load(words, WORD.seq);
    const staleMs = measureStale(now);
    if (seq !== watchedSeq) {
      watchedSeq = seq;
      nextSampleMs = 0;
      reportedMs = 0;
      ownLateMs = Math.min(lateMs, staleMs);
      seen = null;
    }
    // A job or a consumer computes, though no request keeps the main thread awake.
    isHot = !isAwake && spentMs >= (isHot ? hotShare * passedMs : hotCpuMs);
    if ((isAwake || isHot) && !isWorking) beginSchedule(now);
    isWorking = isAwake || isHot;
    const isStale = isHot || staleMs >= (isAwake ? 0 : timing.idleTickMs) + timing.suspectMs;
    const isDue = isWorking && countDue(now);
    if (!isDue && !(isStale && now >= nextSampleMs)) return false;
    nextSampleMs = now + Math.max(timing.blockedSampleMs, staleMs * intervalShareOfAge) * (0.85 + Math.random() * 0.3);
    requestSample(seq, isStale && (witness !== null || staleMs > hangMs / 2));
    return true;
  }

  function measureStale(now: number): number {
    return ((now * UNITS_PER_MS - Atomics.load(words, WORD.beatAt)) | 0) / UNITS_PER_MS;
  }

  function requestSample(seq: number, described: boolean): void {
    hasSampled = true;
    const session = new Session();
    let atMs = nowMs();
    Atomics.store(words, WORD.askedAt, (atMs * UNITS_PER_MS) | 0);
    Atomics.store(words, WORD.described, Number(described));
    // Keeps this thread alive and watching while the main thread is in a native call and cannot answer.
    const waiting = setInterval(() => {
      account(atMs + timing.tickMs);
      atMs = nowMs();
      countDue(atMs);
      if (Atomics.load(words, WORD.mode) === MODE.stopped) answered(null);
      else if (Atomics.load(words, WORD.seq) === seq) reportHang(atMs);
    }, timing.tickMs);
    let done = false;
    const answered = (answer: boolean | Description | null, failure: Error | null = null): void => {
      if (done) return;
      done = true;
      if (answer !== null) failedSamples = 0;
      if (failure !== null) failedSamples += 1;
      if (failure !== null && failedSamples === maxFailedSamples)
        parentPort!.postMessage({ reason: failure.message } satisfies ThreadMessage);
      clearInterval(waiting);
      session.disconnect();
      Atomics.store(words, WORD.connected, 0);
      const description = typeof answer === 'object' ? answer : null;
      if (answer === true || description?.idle === true) idleMs = nowMs();
      else if (description !== null && seq === watchedSeq) remember(description);
      if (Atomics.load(words, WORD.seq) === seq) reportHang(nowMs());
      // The watch goes on in the turn after the disconnect: ending a thread in that turn has aborted processes.
      setImmediate(watch);
    };
    try {
      Atomics.store(words, WORD.connected, 1);
      // The main thread stops this one first, then waits for what is connected: a process that ends meets no session.
      if (Atomics.load(words, WORD.mode) === MODE.stopped) return answered(null);
      session.connectToMainThread();
      session.post('Runtime.evaluate', { expression, returnByValue: true }, (error, reply) => {
        const value = (reply as { result?: { value?: boolean | Description } } | undefined)?.result?.value;
        answered(value ?? null, error);
      });
    } catch (error) {
      answered(null, error as Error);
    }
  }

  /** A block that never ends is never recorded: it is written to stderr, past the main thread's own streams. */
  function reportHang(now: number): void {
    const staleMs = Math.min(measureStale(now), now - idleMs);
    if (staleMs - ownLateMs < hangMs || (reportedMs > 0 && staleMs < reportedMs * 5)) return;
    reportedMs = staleMs;
    if (!reportsHangs || Atomics.load(words, WORD.debugged) === 1) return;
    const [frame] = selectFrames(seen);
    const where = frame === undefined ? '' : ` at ${locate(frame)} (${frame.name ?? 'anonymous'})`;
    const ms = Math.round(staleMs);
    const handler = seen?.handler === null ? '' : ` (${seen?.handler})`;
    const text =
      seen === null || seen.method === null
        ? `The event loop has been blocked for ${ms} ms and still is`
        : `${seen.method} ${seen.route}${handler} has blocked the event loop for ${ms} ms and still does`;
    writeToStderr(`[Perf] ${text}${where}\n`);
  }

  function selectFrames(description: Description | null): readonly Frame[] {
    return description?.frames.filter((frame) => isApplications(frame, null)) ?? [];
  }

  function remember(stack: Description): void {
    seen = stack;
    if (witness === null) return;
    const frames = reportsHangs ? selectFrames(stack) : [];
    const named = frames.map(({ typeName, name }) => `${typeName}.${name}`);
    const holder: LoopHolder = {
      seq: watchedSeq,
      route: stack.method === null ? null : `${stack.method} ${stack.route}`,
      method: named.find((name) => witness.methods.has(name)) ?? stack.handler,
      location: frames[0] === undefined ? null : locate(frames[0]),
    };
    witness.port.postMessage(holder);
  }

  function locate(position: Position): string | null {
    const location = lines.locate(position);
    return loaderMaps && Lines.isTypeScript(position.file ?? '') ? location!.replace(/:\d+:\d+$/, '') : location;
  }

  function writeToStderr(line: string): void {
    for (let attempt = 0; attempt < 20; attempt++) {
      try {
        return void fs.writeSync(2, line);
      } catch (error) {
        // A full pipe is worth waiting for; a closed one is not.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        Atomics.wait(sleeper, 0, 0, 5);
      }
    }
  }
}
