// The limits that every framework is guarded by, in Diana's words and as the peers are told them.

import { createLimiter } from '../../packages/limiter/dist/index.js'

export const MINUTE = 60_000
/** Never reached, so that every call is counted and answered. */
export const PLENTY = 50_000_000

const identify = { account: ['header:x-account-id'], device: ['header:x-device-id'] }

/** One limit per account in a fixed window, as the peers count. */
export const oneRule = (headers = 'draft-11') => {
  return createLimiter({
    identify,
    answer: { headers },
    rules: [{ id: 'account', by: 'account', limit: `${PLENTY}/m`, algorithm: 'fixed-window' }],
  })
}

/** The whole service, each account, each device and each resource, in sliding windows, which is Diana's default. */
export const fourRules = () => {
  return createLimiter({
    identify,
    rules: [
      { id: 'whole', limit: `${PLENTY}/m` },
      { id: 'account', by: 'account', limit: `${PLENTY}/m` },
      { id: 'device', by: 'device', limit: `${PLENTY}/m` },
      { id: 'resource', by: 'resource', limit: `${PLENTY}/m` },
    ],
  })
}

/** The same four keys for a peer, each read from a call by `header(name)` and `path()`. */
export const fourKeys = (header, path) => [
  () => 'whole',
  call => header(call, 'x-account-id'),
  call => header(call, 'x-device-id'),
  path,
]

const ids = ['whole', 'account', 'device', 'resource']

/** What every route answers with. */
export const order = { id: 7, state: 'paid', lines: [{ item: 'bow', count: 1 }] }

/** What a limiter writes to a caller who has so many calls left. */
export const headersWith = left => [
  ['RateLimit-Policy', '"account";q=50000000;w=60'],
  ['RateLimit', `"account";r=${left};t=60`],
]

/** The same of four limits. */
export const fourHeadersWith = left => [
  ['RateLimit-Policy', ids.map(id => `"${id}";q=50000000;w=60`).join(', ')],
  ['RateLimit', ids.map(id => `"${id}";r=${left};t=60`).join(', ')],
]

/** The same to everybody, made once. */
export const staticHeaders = headersWith(PLENTY - 1)
