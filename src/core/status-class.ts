/**
 * 200 for 287: the x00 of a class means an unknown status of it (RFC 9110 section 15). Statuses beyond 599 are an application's own
 * inventions; they count as server errors.
 */
export const classStatus = (status: number): number => Math.min(500, Math.max(100, status - (status % 100)));
