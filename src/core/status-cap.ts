import { STATUS_CODES } from 'node:http';

/** Bounds the statuses that are counted apart: all that are registered, and the first few of an application's own. */
export class StatusCap {
  private readonly admitted = new Set<number>();

  constructor(private readonly maxUnregistered: number) {}

  /** The status itself, else the x00 of its class, which means an unknown status of it (RFC 9110 section 15). */
  admit(status: number): number {
    if (STATUS_CODES[status] !== undefined || this.admitted.has(status)) return status;
    if (this.admitted.size >= this.maxUnregistered) return classStatus(status);
    this.admitted.add(status);
    return status;
  }
}

/** 200 for 287. Statuses beyond 599 are an application's own inventions; they count as server errors. */
export const classStatus = (status: number): number => Math.min(500, Math.max(100, status - (status % 100)));
