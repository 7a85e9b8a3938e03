import { useEffect, useState } from 'preact/hooks';
import type { DashboardData, Scope } from '../view.js';

const EVERY_MS = 2_000;
const HIDDEN_EVERY_MS = 10_000;
const MAX_EVERY_MS = 60_000;
/** Looking takes at most a fortieth of the server's event loop, also where filter and open route make each answer anew. */
const PAUSES_OF_COST = 40;
const IDLE_AFTER_MS = 15 * 60_000;
const TIMEOUT_MS = 10_000;

/** Events of somebody who is here. */
const SIGNS = ['pointermove', 'pointerdown', 'keydown', 'wheel', 'touchstart'];

/** The state of the connection between page and server. */
export type Link = 'loading' | 'live' | 'paused' | 'idle' | 'lost' | 'refused' | 'full';

export interface Question {
  /** Null: all pods where the server knows them. */
  readonly scope: Scope | null;
  readonly filter: string;
  readonly routeId: string | null;
}

/** The last answer, and the state of the connection. */
export interface Known {
  readonly state: DashboardData | null;
  readonly link: Link;
  /** The present pause; grows when the page is hidden, and while the server does not answer. */
  readonly everyMs: number;
}

export interface Polled extends Known {
  readonly pause: () => void;
  readonly resume: () => void;
}

/** One name a tab: whoever loads the page again is not another viewer. */
export const VIEWER = sessionStorage.getItem('perf-viewer') ?? Math.random().toString(36).slice(2);
sessionStorage.setItem('perf-viewer', VIEWER);

/** Polls the server. Nothing is sent while paused, or when nobody has been here for long. */
export function usePolling(question: Question): Polled {
  const [known, setKnown] = useState<Known>({ state: null, link: 'loading', everyMs: EVERY_MS });
  const [poller] = useState(() => new Poller(question, known, setKnown));
  poller.question = question;
  useEffect(() => poller.start(), []);
  // A new question should not wait for the next turn.
  useEffect(() => poller.soon(), [question.scope, question.filter, question.routeId]);
  return { ...known, pause: poller.pause, resume: poller.resume };
}

class Poller {
  private timer = 0;
  private failures = 0;
  /** The cost of the last two answers: one alone may have been the machine's. */
  private tookMs: readonly [number, number] = [0, 0];
  private seenAt = Date.now();
  private busy = false;
  /** Asked for while an answer was under way. */
  private again = false;

  constructor(
    public question: Question,
    private known: Known,
    private readonly setKnown: (known: Known) => void,
  ) {}

  start(): void {
    for (const event of SIGNS) addEventListener(event, this.isHere, { passive: true });
    document.addEventListener('visibilitychange', this.shown);
    void this.poll();
  }

  readonly pause = (): void => {
    clearTimeout(this.timer);
    this.update({ link: 'paused' });
  };

  readonly resume = (): void => {
    this.seenAt = Date.now();
    this.update({ link: this.known.state === null ? 'loading' : 'live' });
    this.soon();
  };

  soon(): void {
    if (this.known.link === 'paused' || this.known.link === 'idle') return;
    if (this.busy) this.again = true;
    else this.later(150);
  }

  private readonly isHere = (): void => {
    this.seenAt = Date.now();
    if (this.known.link === 'idle') this.resume();
  };

  private readonly shown = (): void => {
    if (document.visibilityState === 'visible') {
      this.isHere();
      this.soon();
    }
  };

  private async poll(): Promise<void> {
    if (Date.now() - this.seenAt > IDLE_AFTER_MS) return this.update({ link: 'idle' });
    this.busy = true;
    this.again = false;
    const link = await this.ask().catch((): Link => 'lost');
    this.busy = false;
    // Paused while the answer was under way.
    if (this.known.link === 'paused') return;
    this.failures = link === 'live' ? 0 : this.failures + 1;
    this.update({ link });
    this.later(this.again ? 0 : this.everyMs());
  }

  private async ask(): Promise<Link> {
    const { scope, filter, routeId } = this.question;
    const query = new URLSearchParams({ viewer: VIEWER });
    if (scope !== null) query.set('scope', scope);
    if (filter !== '') query.set('filter', filter);
    if (routeId !== null) query.set('route', routeId);
    const response = await fetch(`data?${query}`, { cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (response.status === 401 || response.status === 403) return 'refused';
    if (response.status === 429) return 'full';
    if (!response.ok) throw new Error(String(response.status));
    const answer = (await response.json()) as DashboardData;
    if (isOfOtherPage(answer.assets)) {
      location.reload();
      return this.known.link;
    }
    this.tookMs = [answer.tookMs, this.tookMs[0]];
    this.update({ state: answer });
    return 'live';
  }

  private everyMs(): number {
    const ms = Math.max(
      document.visibilityState === 'hidden' ? HIDDEN_EVERY_MS : EVERY_MS,
      1_000 * Math.ceil((PAUSES_OF_COST * Math.min(...this.tookMs)) / 1_000),
    );
    const isRefused = this.known.link === 'refused' || this.known.link === 'full';
    return Math.min(MAX_EVERY_MS, ms * (isRefused ? 8 : 2 ** Math.min(4, this.failures)));
  }

  private later(ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.poll(), ms);
    if (ms >= EVERY_MS) this.update({ everyMs: ms });
  }

  private update(fresh: Partial<Known>): void {
    this.known = { ...this.known, ...fresh };
    this.setKnown(this.known);
  }
}

/** A new release has come: its page may read its data otherwise. Once for each, since two releases may run side by side. */
function isOfOtherPage(assets: string): boolean {
  if (document.querySelector(`script[src="${assets}"]`) !== null) return false;
  if (sessionStorage.getItem('perf-reloaded') === assets) return false;
  sessionStorage.setItem('perf-reloaded', assets);
  return true;
}
