import { from, Observable, Subject, takeUntil, type ObservableInput } from 'rxjs';

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
