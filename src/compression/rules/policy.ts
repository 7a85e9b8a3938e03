import { hasMember, type FieldValue } from './field-value.js';

/** What the policy reads of a response. */
export interface ResponseHead {
  readonly status: number;
  header(name: string): FieldValue;
}

/** Whoever sets one of these frames the body itself, lets clients ask for parts of it, or tells its digest (RFC 9530). */
const ITS_OWN = [
  'content-range',
  'accept-ranges',
  'trailer',
  'transfer-encoding',
  'content-digest',
  'repr-digest',
  'content-md5',
];

/** Whether a content coding may be applied to the response at all, whatever the client accepts (RFC 9110, 9111). */
export function mayEncode(head: ResponseHead, isCompressible: (contentType: string) => boolean): boolean {
  const { status } = head;
  // A part (206) counts bytes of the representation that was asked for; others have no body, or tell of an error.
  if (status < 200 || status === 204 || status === 205 || status === 206 || status === 304 || status >= 400)
    return false;
  const type = head.header('content-type');
  if (typeof type !== 'string' || !isCompressible(type)) return false;
  return !isEncoded(head) && !isLeftAlone(head);
}

/** Whether a header says that the body must stay as it is. */
export function isLeftAlone(head: ResponseHead): boolean {
  const itsOwn = ITS_OWN.some((name) => head.header(name) !== undefined);
  return itsOwn || hasMember(head.header('cache-control'), 'no-transform');
}

/** Whether the application has encoded the body itself. */
export function isEncoded(head: ResponseHead): boolean {
  const encoding = head.header('content-encoding');
  return encoding !== undefined && encoding !== '' && encoding !== 'identity';
}

/**
 * Whether the response may be kept and given to somebody else: a plain 200 to GET or HEAD that sets no cookie and is
 * neither private nor no-store. A cookie is also the sign of a secret near reflected input (BREACH).
 */
export function mayKeep(head: ResponseHead, method: string): boolean {
  if (head.status !== 200 || (method !== 'GET' && method !== 'HEAD')) return false;
  return !isForOne(head);
}

/** Whether a header says that the response is for its own client only. */
export function isForOne(head: ResponseHead): boolean {
  const control = head.header('cache-control');
  return head.header('set-cookie') !== undefined || hasMember(control, 'private') || hasMember(control, 'no-store');
}
