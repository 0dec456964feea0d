import { describe, expect, it } from 'vitest'
import { dimensionSuite } from '../testing/dimensions/suite.ts'
import { dimensions } from './index.ts'

const bare = { method: 'GET', path: '/' }
const anonymous = { call: bare, value: undefined }
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const token = `${encoded({ alg: 'HS256' })}.${encoded({ sub: 'ann' })}.c2lnbmF0dXJl`
const settings = { ipv6Prefix: 64, nowMs: () => 0, jwt: { keys: [], verified: true } }

const values: Readonly<Record<string, Parameters<typeof dimensionSuite>[0]['values']>> = {
  ip: [anonymous, { call: { ...bare, ip: '203.0.113.9' }, value: '203.0.113.9' }],
  resource: [
    { call: bare, value: '/' },
    { call: { ...bare, resource: '/users/:id' }, value: '/users/:id' },
  ],
  host: [anonymous, { call: { ...bare, host: 'example.com' }, value: 'example.com' }],
  method: [{ call: { ...bare, method: 'head' }, value: 'GET' }],
  header: [anonymous, { call: { ...bare, headers: { 'x-key': 'a' } }, argument: 'x-key', value: 'a' }],
  query: [anonymous, { call: { ...bare, query: 'key=a' }, argument: 'key', value: 'a' }],
  cookie: [anonymous, { call: { ...bare, headers: { cookie: 'key=a' } }, argument: 'key', value: 'a' }],
  jwt: [anonymous, { call: { ...bare, headers: { authorization: `Bearer ${token}` } }, argument: 'sub', value: 'ann' }],
  'client-certificate': [
    anonymous,
    { call: { ...bare, clientCertificate: { cn: 'billing', fingerprint: 'ab' } }, argument: 'cn', value: 'billing' },
  ],
  attribute: [anonymous, { call: { ...bare, attributes: { plan: 'free' } }, argument: 'plan', value: 'free' }],
}

describe('the published suite for dimensions', () => {
  it('the published suite for dimensions has values for every dimension', () => {
    expect(Object.keys(values).sort()).toEqual(dimensions.map(({ name }) => name).sort())
  })

  for (const member of dimensions) {
    const dimension = member.set?.(settings) ?? member
    for (const { name, run } of dimensionSuite({ dimension, values: values[member.name] ?? [] })) it(name, run)
  }
})
