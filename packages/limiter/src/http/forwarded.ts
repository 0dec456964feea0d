const MAX_ITEM = 1024
const PAIR = /^[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:"([^"\\]*)"|([!#$%&'*+.^_`|~\w:[\]-]+))[ \t]*$/

/**
 * The address of one item of a Forwarded header (RFC 7239): `for=192.0.2.60;proto=http`, `For="[2001:db8::17]:4711"`.
 * Empty if it names none, or anything in it is not as it should be: items are cut at commas from the right, since a
 * caller's open quote must not swallow what a proxy has added, and what a caller got into a quoted text of the proxy's
 * item leaves an unmatched quote.
 */
export function readForwarded(item: string): string {
  if (item.length > MAX_ITEM) return ''
  let address: string | undefined
  for (const text of item.split(';')) {
    const [, name, quoted, plain] = PAIR.exec(text) ?? []
    if (name === undefined) return ''
    if (name.toLowerCase() !== 'for') continue
    if (address !== undefined) return ''
    address = quoted ?? plain
  }
  return address ?? ''
}
