import { useEffect, useState } from 'preact/hooks';
import type { DashboardData, Scope } from '../view.js';

const EVERY_MS = 2_000;
/** While the server does not answer. */
const SLOWLY_MS = 10_000;
const TIMEOUT_MS = 10_000;

export type Link = 'loading' | 'live' | 'paused' | 'lost' | 'refused';

interface Question {
  /** Null: all pods where the server knows them. */
  readonly scope: Scope | null;
  readonly routeId: string | null;
}

interface Polled {
  /** The last answer. */
  readonly state: DashboardData | null;
  readonly link: Link;
}

/** Polls the server: at once for a new question, and never while paused or hidden. */
export function usePolling({ scope, routeId }: Question): Polled & { readonly togglePause: () => void } {
  const [polled, setPolled] = useState<Polled>({ state: null, link: 'loading' });
  const [isPaused, setPaused] = useState(false);
  const query = new URLSearchParams({
    ...(scope !== null && { scope }),
    ...(routeId !== null && { route: routeId }),
  }).toString();
  useEffect(() => {
    if (isPaused) return undefined;
    const outdated = new AbortController();
    void poll(query, outdated.signal, (fresh) => setPolled((before) => ({ ...before, ...fresh })));
    return () => outdated.abort();
  }, [query, isPaused]);
  return { ...polled, link: isPaused ? 'paused' : polled.link, togglePause: () => setPaused(!isPaused) };
}

async function poll(query: string, outdated: AbortSignal, update: (fresh: Partial<Polled>) => void): Promise<void> {
  while (!outdated.aborted) {
    const fresh = await load(query, outdated).catch((): Partial<Polled> => ({ link: 'lost' }));
    if (outdated.aborted) return;
    update(fresh);
    await new Promise((resolve) => setTimeout(resolve, fresh.link === 'live' ? EVERY_MS : SLOWLY_MS));
    if (document.hidden)
      await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
  }
}

async function load(query: string, outdated: AbortSignal): Promise<Partial<Polled>> {
  const signal = AbortSignal.any([outdated, AbortSignal.timeout(TIMEOUT_MS)]);
  const response = await fetch(`data?${query}`, { cache: 'no-store', signal });
  if (response.status === 401 || response.status === 403) return { link: 'refused' };
  if (!response.ok) throw new Error(String(response.status));
  const state = (await response.json()) as DashboardData;
  if (isOfOtherPage(state.assets)) location.reload();
  return { state, link: 'live' };
}

/** A new release has come: its page may read its data otherwise. Once for each, since two releases may run side by side. */
function isOfOtherPage(assets: string): boolean {
  if (document.querySelector(`script[src="${assets}"]`) !== null) return false;
  if (sessionStorage.getItem('perf-reloaded') === assets) return false;
  sessionStorage.setItem('perf-reloaded', assets);
  return true;
}
