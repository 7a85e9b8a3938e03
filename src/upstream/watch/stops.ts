/** Functions that undo what was done to an object; an object that the application forgets takes its function with it. */
export class Stops {
  private readonly stops = new WeakMap<object, () => void>();
  private readonly objects = new Set<WeakRef<object>>();

  has(object: object): boolean {
    return this.stops.has(object);
  }

  /** Calls the function that the object has already. */
  set(object: object, stop: () => void): void {
    this.stops.get(object)?.();
    for (const ref of this.objects) if (ref.deref() === undefined) this.objects.delete(ref);
    if (!this.stops.has(object)) this.objects.add(new WeakRef(object));
    this.stops.set(object, stop);
  }

  close(): void {
    for (const ref of this.objects) {
      const object = ref.deref();
      if (object !== undefined) this.stops.get(object)?.();
    }
    this.objects.clear();
  }
}
