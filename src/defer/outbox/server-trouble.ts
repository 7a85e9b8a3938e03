/** Error names and codes of a server or connection in trouble: sockets, ioredis, node-redis, BullMQ, Redis replies. */
const NAMES = new Set(['MaxRetriesPerRequestError', 'AbortError', 'ConnectionClosedError', 'ClusterAllFailedError']);
const CODES = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|NR_CLOSED|CONNECTION_)/;
const REPLIES =
  /^(LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|OOM|MISCONF|NOREPLICAS|BUSY|NOAUTH|WRONGPASS|EXECABORT)\b/;
const TEXTS = /connection (is|was)? ?closed|stream isn't writeable|has not answered|timed out/i;

/**
 * Whether an error speaks of the server's state rather than of the job: then the same job is sent again for as long as
 * it takes. Wrongly true keeps a bad job in the buffer; wrongly false can lose a good one only after
 * {@link BulkSender}'s other conditions hold too.
 */
export function isServerTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return (
    NAMES.has(error.name) ||
    (typeof code === 'string' && CODES.test(code)) ||
    REPLIES.test(error.message) ||
    TEXTS.test(error.message)
  );
}
