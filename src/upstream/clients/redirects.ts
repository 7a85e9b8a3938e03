/**
 * Who follows one drops the connection, or the response, without reading the rest, and no channel tells of that:
 * https://fetch.spec.whatwg.org/#redirect-status
 */
export const isRedirect = (status: number | undefined): boolean => REDIRECTS.has(status);

const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);
