/** Events of one post that has not arrived, or is not known to have. */
export interface Undelivered {
  /** How many events the post held; the application's own ones that waited in the SDK travel along. */
  readonly events: number;
  /** Few different texts, without secrets: it is part of the cause that is reported. */
  readonly reason: string;
  /** Posts the same events again; null when they might arrive twice that way, or never would. */
  readonly again: ((signal: AbortSignal) => Promise<Undelivered | null>) | null;
}

export const lost = (events: number, error: unknown): Undelivered => ({ events, reason: reasonOf(error), again: null });

/** The SDK puts the secret key into the URL of its specs, and URLs into its messages. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replaceAll(/secret-[\w-]+/g, 'secret-…').slice(0, 200);
}

/** Settles as `work` does, or rejects with the signal's reason: for work that may not heed the signal itself. */
export async function abortable<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort!);
  }
}
