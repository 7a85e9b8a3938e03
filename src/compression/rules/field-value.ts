import { validateHeaderValue } from 'node:http';

/** The value of a response header as frameworks hold it. */
export type FieldValue = string | number | readonly string[] | undefined;

/** A header that was set to null, as one copied from an answer that lacks it, says nothing. Frameworks accept it, whatever their types say. */
export const present = (value: FieldValue | null): FieldValue => value ?? undefined;

/** A list-valued header as one string, in lower case. */
export function listValue(value: FieldValue): string {
  if (value === undefined) return '';
  return (typeof value === 'object' ? value.join(',') : String(value)).toLowerCase();
}

/** Whether a list-valued header (`Cache-Control`, `Vary`) has the member, whatever its case or argument. */
export function hasMember(value: FieldValue, member: string): boolean {
  if (value === undefined) return false;
  const list = listValue(value);
  return list.includes(member) && list.split(',').some((part) => part.split('=', 1)[0]!.trim() === member);
}

/** What a member of a list-valued header says behind `=`; undefined without. */
export function argumentOf(value: FieldValue, member: string): string | undefined {
  const parts = listValue(value)
    .split(',')
    .map((part) => part.trim());
  return parts.find((part) => part.startsWith(`${member}=`))?.slice(member.length + 1);
}

/** The `Vary` of a response that would have none: nothing but the coding depends on the request. */
export const VARY = 'accept-encoding';

/**
 * `Vary` with `accept-encoding` in it, once. In lower case, because `@fastify/compress` compares case-sensitively and
 * would add a second one.
 */
export function varyWithAcceptEncoding(value: FieldValue): string {
  if (value === undefined || value === '') return VARY;
  const members = (typeof value === 'object' ? value.join(',') : String(value))
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '' && member.toLowerCase() !== VARY);
  return members.includes('*') ? '*' : [...members, VARY].join(', ');
}

/** Whether Node can write them. */
export function isWritable(headers: Readonly<Record<string, FieldValue>>): boolean {
  try {
    for (const [name, value] of Object.entries(headers)) {
      for (const line of [value].flat()) validateHeaderValue(name, String(line));
    }
    return true;
  } catch {
    // Whoever sends them says what is wrong.
    return false;
  }
}
