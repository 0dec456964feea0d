import { STATUS_CODES } from 'node:http'

/** The reason phrase of a service, or the usual one where Node would refuse to write what the service said. */
export function reasonFor(status: number, text: string): string {
  if (text === STATUS_CODES[status]) return text
  return /^[\t\x20-\x7e]*$/.test(text) ? text : (STATUS_CODES[status] ?? '')
}
