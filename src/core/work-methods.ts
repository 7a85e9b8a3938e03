/** Labels in the place of a method in rows of measured work. No request has one: its method would be `_OTHER`. */
const WORK: ReadonlySet<string> = new Set(['CRON', 'QUEUE', 'MESSAGE', 'EVENT', 'SOCKET', 'GRAPHQL', 'METHOD']);
/** Jobs are no traffic, and the HTTP request of a resolver is counted already. */
const NO_TRAFFIC: ReadonlySet<string> = new Set(['CRON', 'QUEUE', 'GRAPHQL', 'METHOD']);

export const isWork = (method: string): boolean => WORK.has(method);
/** Whether a row counts in figures of all routes together. */
export const isTraffic = (method: string): boolean => !NO_TRAFFIC.has(method);
