/** Undo functions by the client that was changed. Weak: a client that the application drops is not kept here. */
export class Stops {
  private readonly stops = new WeakMap<object, () => void>();
  private readonly objects = new Set<WeakRef<object>>();

  has(object: object): boolean {
    return this.stops.has(object);
  }

  /** Undoes an earlier change of the object, and keeps `stop` for the new one. */
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
