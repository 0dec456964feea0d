const unsafe = /[^\x20\x21\x23-\x5b\x5d-\x7e]/

/** Writes one character that is not printable ASCII, or that is a quote or a backslash. */
type EscapeCharacter = (code: number) => string

const jsonEscape: EscapeCharacter = code => `\\u${code.toString(16).padStart(4, '0')}`

/** As nginx writes it, byte by byte. */
const logEscape: EscapeCharacter = code => {
  if (code < 256) return `\\x${hex(code)}`
  return [...Buffer.from(String.fromCharCode(code))].map(byte => `\\x${hex(byte)}`).join('')
}

/** Returns a text from outside for use between quotes of JSON: ASCII, of at most `maxLength` characters, without line breaks. */
export function escapeJson(text: string, maxLength: number): string {
  return escapeWith(text, maxLength, jsonEscape)
}

/** Escapes text between quotes of a log in the combined format. */
export function escapeLog(text: string, maxLength: number): string {
  return escapeWith(text, maxLength, logEscape)
}

function escapeWith(text: string, maxLength: number, write: EscapeCharacter): string {
  if (!unsafe.test(text)) return text.length <= maxLength ? text : `${text.slice(0, maxLength - 3)}...`
  let escaped = ''
  for (let at = 0; at < text.length; at++) {
    const next = unsafe.test(text[at]!) ? write(text.charCodeAt(at)) : text[at]!
    if (escaped.length + next.length > maxLength - 3) return `${escaped}...`
    escaped += next
  }
  return escaped
}

function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, '0')
}
