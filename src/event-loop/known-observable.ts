import { from, Observable, Subject, takeUntil, type ObservableInput } from 'rxjs';

/** As rxjs itself tells it, also of another copy of rxjs. */
export function isObservable(value: unknown): value is ObservableInput<unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const given = value as { lift?: unknown; subscribe?: unknown };
  return typeof given.lift === 'function' && typeof given.subscribe === 'function';
}

/** The same observable, whose subscription and notifications happen within `run`. `ended` is called once. */
export function knownObservable(
  source: ObservableInput<unknown>,
  run: (work: () => void) => void,
  ended: () => void,
): Observable<unknown> {
  return new Observable((subscriber) => {
    // A source that emits while it is subscribed to hears of the end at once only this way.
    const stop = new Subject<void>();
    subscriber.add(() => {
      ended();
      stop.next();
    });
    run(() =>
      from(source)
        .pipe(takeUntil(stop))
        .subscribe({
          next: (value) => run(() => subscriber.next(value)),
          error: (error: unknown) => run(() => subscriber.error(error)),
          complete: () => run(() => subscriber.complete()),
        }),
    );
  });
}
