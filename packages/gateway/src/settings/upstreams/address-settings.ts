import { listOf, textOf, z } from 'diana-limiter/schema'

const unixAddress = /^unix:(\/[^:?#]*)(?::(\/[^?#]*))?$/
/** The longest path that the kernel takes (sun_path without its final zero). */
const longestSocketPath = 107

/** Returns the parts of an address such as `unix:/run/app.sock:/base`; undefined for one that is no socket's. */
export function parseUnixAddress(text: string): { readonly socketPath: string; readonly path: string } | undefined {
  const [, socketPath, path = '/'] = unixAddress.exec(text) ?? []
  return socketPath === undefined ? undefined : { socketPath, path }
}

/** Returns what is wrong with the address of a service. */
export function upstreamFault(text: string): string | undefined {
  if (/^unix:/i.test(text)) return unixFault(text)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    return 'is not the address of a service: write one such as http://127.0.0.1:3000 or unix:/run/app.sock'
  }
  if (url.username !== '' || url.password !== '') return 'must be without a name and password: set a header instead'
  return url.search === '' && url.hash === '' ? undefined : 'must end with its path: take out what follows ? or #'
}

function unixFault(text: string): string | undefined {
  const parts = parseUnixAddress(text)
  if (parts === undefined || parts.socketPath.endsWith('/')) {
    return 'must name a socket by its whole path, such as unix:/run/app.sock, or unix:/run/app.sock:/base with a path'
  }
  const bytes = Buffer.byteLength(parts.socketPath)
  if (bytes > longestSocketPath) return `has a socket path of ${bytes} bytes: the system takes ${longestSocketPath}`
  return /[^\x21-\x7e]/.test(text) ? 'must be without spaces and control characters' : undefined
}

const address = textOf(upstreamFault, 2048)
const weight = z.int().min(0).max(1000)

/** Addresses, each alone or with a weight. */
export const addressesSchema: z.Schema<{ readonly url: string; readonly weight: number }[]> = listOf(
  z.union([
    address.transform(url => ({ url, weight: 1 })),
    z.strictObject({
      url: address.describe('http://10.0.0.1:3000, http://app.internal:3000 or unix:/run/app.sock.'),
      weight: weight.default(1).describe('Its part of the calls, beside the others; 0: only callers who stay with it.'),
    }),
  ]),
  { min: 1, max: 100 },
).superRefine((addresses, context) => {
  if (addresses.length === 0 || addresses.some(one => one.weight !== 0)) return
  context.addIssue({ code: 'custom', message: 'has no address with a weight above 0: give one to some address' })
})
