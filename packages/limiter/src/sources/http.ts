import { basicHeader, parseAddress, showAddress } from './address.ts'
import { changes } from './client/changes.ts'
import { fetchText, type Reply, statusError } from './client/fetch-text.ts'
import { pause } from './client/pause.ts'
import { hashText } from './client/text.ts'
import { conflict, writeGuarded } from './client/write-guarded.ts'
import { credentialOptions, durationOption, secretOption } from './options.ts'
import type { Source, SourceDocument, SourceKind } from './source.ts'
import { sourceKind } from './source.ts'

const MAX_REDIRECTS = 5

/** A document at a URL, requested periodically; the server answers 304 while it has not changed. */
export const http: SourceKind = sourceKind({
  name: 'http',
  options: kit => ({
    interval: durationOption(kit, '5s', { least: '100ms', most: '1h' }).describe('how often to ask; default: 5s'),
    headers: kit.z.record(kit.z.string().regex(/^[\w-]{1,64}$/), secretOption(kit)).optional(),
    ...credentialOptions(kit),
  }),
  create(address, options): Source {
    const { url, secrets, ...credentials } = parseAddress(address, options)
    const name = `http ${showAddress(url)}`
    const bearer = credentials.token === undefined ? undefined : { authorization: `Bearer ${credentials.token}` }
    const headers = { ...(bearer ?? basicHeader(credentials)), ...lowerCase(options.headers ?? {}) }

    async function* readings(signal: AbortSignal): AsyncGenerator<SourceDocument> {
      let known: Readonly<Record<string, string>> = {}
      for (;;) {
        const reply = await get(url, { ...headers, ...known }, signal)
        const isUnchanged = reply.status === 304 && Object.keys(known).length > 0
        if (!isUnchanged) {
          yield parseDocument(reply)
          known = validators(reply.headers)
        }
        await pause(options.interval, signal)
      }
    }
    const hidden = [...secrets, ...Object.values(options.headers ?? {})]
    const write = (text: string, base: SourceDocument, signal: AbortSignal) =>
      writeGuarded(text, { name, secrets: hidden }, async () => {
        const present = await get(url, headers, signal)
        if (parseDocument(present).text !== base.text) throw conflict(name)
        const reply = await fetchText(url, signal, {
          method: 'PUT',
          headers: { ...headers, ...onlyIf(present) },
          body: text,
        })
        if (reply.status === 412) throw conflict(name)
        if (reply.status === 405 || reply.status === 501) throw new Error('takes no PUT; change the document there')
        if (reply.status < 200 || reply.status > 299) throw statusError(reply)
        return parseDocument(await get(url, headers, signal)).version
      })
    return { name, watch: signal => changes(readings, signal, { name, secrets: hidden }), write }
  },
})

async function get(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Reply> {
  let at = url
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const reply = await fetchText(at, signal, { headers })
    const location = reply.headers.get('location')
    if (![301, 302, 303, 307, 308].includes(reply.status) || location === null) return reply
    // elsewhere would be sent the credentials, and could write the rules
    if (!URL.canParse(location, at.href) || new URL(location, at).origin !== url.origin) throw statusError(reply)
    at = new URL(location, at)
  }
  throw new Error(`redirects more than ${MAX_REDIRECTS} times; write where it really is`)
}

function parseDocument({ status, headers, text }: Reply): SourceDocument {
  if (status === 404) return { text: '', version: hashText(''), isMissing: true }
  if (status !== 200) throw statusError({ status })
  return { text, version: headers.get('etag') ?? hashText(text) }
}

/** Returns the condition under which a write replaces only the document that was read (RFC 9110, 13.1.1). */
function onlyIf({ status, headers }: Reply): Record<string, string> {
  if (status === 404) return { 'if-none-match': '*' }
  const etag = headers.get('etag')
  if (etag !== null && !etag.startsWith('W/')) return { 'if-match': etag }
  throw new Error(
    'gives no strong ETag, without which a write could undo another change; change the document on the server',
  )
}

function validators(headers: Headers): Record<string, string> {
  const etag = headers.get('etag')
  if (etag !== null) return { 'if-none-match': etag }
  const modified = headers.get('last-modified')
  // it counts whole seconds: a later change within the same one would go unseen (RFC 9110, 8.8.2.2)
  const isOld = modified !== null && Date.parse(headers.get('date') ?? '') - Date.parse(modified) >= 1000
  return isOld ? { 'if-modified-since': modified } : {}
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}
