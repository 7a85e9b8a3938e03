/** The value of a response header as frameworks store it. */
export type FieldValue = string | number | readonly string[] | undefined;

/** Null counts as absent: frameworks accept a header of null, for example copied from an answer without it. */
export const present = (value: FieldValue | null): FieldValue => value ?? undefined;

const joinLines = (value: FieldValue | null): string => (Array.isArray(value) ? value.join(',') : String(value ?? ''));

/** A list-valued header as one string, in lower case. */
export const listValue = (value: FieldValue): string => joinLines(value).toLowerCase();

/** The members of a list-valued header, as they are written. */
export function splitMembers(value: FieldValue): string[] {
  const members = joinLines(value).split(',');
  return members.map((member) => member.trim()).filter((member) => member !== '');
}

/** Whether a list-valued header (`Cache-Control`, `Vary`) has the member, whatever its case or argument. */
export function hasMember(value: FieldValue, member: string): boolean {
  if (value === undefined) return false;
  const list = listValue(value);
  return list.includes(member) && list.split(',').some((part) => part.split('=', 1)[0]!.trim() === member);
}

/** The argument of a list-valued header's member, behind `=`; undefined without one. */
export function readArgument(value: FieldValue, member: string): string | undefined {
  const found = splitMembers(listValue(value)).find((part) => part.startsWith(`${member}=`));
  return found?.slice(member.length + 1);
}

const VARY = 'accept-encoding';

/** Returns `Vary` with `accept-encoding` among its members; a value that has it already stays as it is. */
export function varyWithAcceptEncoding(value: FieldValue): string {
  if (value === undefined) return VARY;
  const members = splitMembers(value);
  if (members.includes('*')) return '*';
  return (hasMember(value, VARY) ? members : [...members, VARY]).join(', ');
}

/**
 * Types that compress: text, and what is text by another name. `application/octet-stream` is left out: its
 * content is unknown. So is `text/event-stream`: a compressor delays events until its buffer is full.
 */
const COMPRESSIBLE =
  /^(?:text\/(?!event-stream$).+|.+[/+](?:json|xml|text|yaml)|application\/(?:javascript|ecmascript|x-javascript|typescript|json5|jsonl|ndjson|x-ndjson|x-json-stream|geojson|graphql|manifest|sql|rtf|toml|wasm|x-www-form-urlencoded|x-sh|x-yaml|vnd\.ms-fontobject)|font\/(?:otf|ttf|collection)|image\/(?:bmp|x-icon|vnd\.microsoft\.icon))$/;

/** Compared first: most answers have it. */
const JSON_TYPE = 'application/json; charset=utf-8';

/** Whether bodies of this `Content-Type` get smaller. */
export function isCompressible(contentType: string): boolean {
  if (contentType === JSON_TYPE) return true;
  const end = contentType.indexOf(';');
  return COMPRESSIBLE.test((end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase());
}

/** Parts of a response that the policy reads. */
export interface ResponseHead {
  readonly status: number;
  header(name: string): FieldValue;
}

/** With these headers the application frames the body itself, serves parts of it, or sends its digest (RFC 9530, RFC 3230). */
const ITS_OWN = [
  'content-range',
  'accept-ranges',
  'trailer',
  'transfer-encoding',
  'content-digest',
  'repr-digest',
  'digest',
  'content-md5',
];

/** Whether a content coding may be applied to the response at all, whatever the client accepts (RFC 9110, 9111). */
export function mayEncode(head: ResponseHead): boolean {
  const { status } = head;
  // 206 counts bytes of the unencoded body; the others have no body, or report an error.
  if (status < 200 || status === 204 || status === 205 || status === 206 || status === 304 || status >= 400)
    return false;
  const type = head.header('content-type');
  if (typeof type !== 'string' || !isCompressible(type)) return false;
  return !isEncoded(head) && !isLeftAlone(head);
}

/** Whether a header forbids changes of the body. */
export function isLeftAlone(head: ResponseHead): boolean {
  return (
    ITS_OWN.some((name) => head.header(name) !== undefined) || hasMember(head.header('cache-control'), 'no-transform')
  );
}

/** Whether the application has encoded the body itself. */
export function isEncoded(head: ResponseHead): boolean {
  const encoding = head.header('content-encoding');
  return encoding !== undefined && encoding !== '' && encoding !== 'identity';
}

/**
 * Whether the response may be kept and given to other clients: a plain 200 to GET or HEAD that sets no cookie and is
 * neither private nor no-store. A cookie is also the sign of a secret near reflected input (BREACH).
 */
export function mayKeep(head: ResponseHead, method: string): boolean {
  if (head.status !== 200 || (method !== 'GET' && method !== 'HEAD')) return false;
  return !isForOne(head);
}

/** Whether a header restricts the response to its own client. */
export function isForOne(head: ResponseHead): boolean {
  const control = head.header('cache-control');
  return head.header('set-cookie') !== undefined || hasMember(control, 'private') || hasMember(control, 'no-store');
}
