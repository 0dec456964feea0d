import { BlockList } from 'node:net'
import { cpuTimeOf } from '@test/cpu-time'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dimensions } from '../../dimensions/index.ts'
import { compileCallers } from './callers.ts'

const lookup = { identify: { account: ['header:x-account'] }, dimensions }
const from = (ip: string | undefined, more: object = {}) => ({ method: 'GET', path: '/', ip, ...more })

describe('a list of callers', () => {
  const listed = compileCallers(
    { ip: ['10.0.0.0/8', '203.0.113.9', '2001:db8::/32'], account: ['mallory', '203.0.113.7'] },
    lookup,
  )

  it.each([
    ['10.1.2.3', true],
    ['::ffff:10.1.2.3', true],
    ['::ffff:a01:203', true],
    ['11.0.0.1', false],
    ['203.0.113.9', true],
    ['203.0.113.10', false],
    ['2001:DB8:0:0::1', true],
    ['2001:db9::1', false],
    ['fe80::1%eth0', false],
    ['203.0.113.7', false],
    ['nonsense', false],
    [undefined, false],
  ])('a list of callers contains the address %s: %s', (ip, is) => {
    expect(listed(from(ip))).toBe(is)
  })

  it('a list of callers matches the exact value that the application or a header names', () => {
    expect(listed(from('192.0.2.1', { headers: { 'x-account': 'mallory' } }))).toBe(true)
    expect(listed(from('192.0.2.1', { attributes: { account: 'mallory' } }))).toBe(true)
    expect(listed(from('192.0.2.1', { attributes: { account: 'alice' }, headers: { 'x-account': 'mallory' } }))).toBe(
      false,
    )
    expect(listed(from('192.0.2.1', { headers: { 'x-account': 'Mallory' } }))).toBe(false)
  })

  it('a list of callers uses the address from the application or from identify', () => {
    expect(listed(from('192.0.2.1', { attributes: { ip: '10.1.2.3' } }))).toBe(true)
    const identified = compileCallers({ ip: ['10.0.0.0/8'] }, { identify: { ip: ['header:x-real-ip'] }, dimensions })
    expect(identified(from('192.0.2.1', { headers: { 'x-real-ip': '10.1.2.3' } }))).toBe(true)
    expect(identified(from('10.1.2.3'))).toBe(false)
  })

  it('a list of all IPv6 addresses matches no IPv4 address, and vice versa', () => {
    const everyIPv6 = compileCallers({ ip: ['::/0'] }, lookup)
    expect([everyIPv6(from('2001:db8::1')), everyIPv6(from('10.0.0.1'))]).toEqual([true, false])
    const everyIPv4 = compileCallers({ ip: ['0.0.0.0/0'] }, lookup)
    expect([everyIPv4(from('::ffff:10.0.0.1')), everyIPv4(from('2001:db8::1'))]).toEqual([true, false])
  })

  it('a list of networks agrees with net.BlockList of Node', () => {
    const byte = fc.nat(255)
    const address = fc.tuple(byte, byte, byte, byte).map(bytes => bytes.join('.'))
    const network = fc.tuple(address, fc.nat(32))
    fc.assert(
      fc.property(fc.array(network, { minLength: 1, maxLength: 20 }), fc.array(address), (networks, addresses) => {
        const theirs = new BlockList()
        for (const [net, prefix] of networks) theirs.addSubnet(net, prefix)
        const ours = compileCallers({ ip: networks.map(([net, prefix]) => `${net}/${prefix}`) }, lookup)
        for (const one of [...addresses, ...networks.map(([net]) => net)])
          expect(ours(from(one))).toBe(theirs.check(one))
      }),
    )
  })

  it('a list of ten thousand networks is as fast as one of a few', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`)
    const listed = compileCallers({ ip: many }, lookup)
    const spentMs = cpuTimeOf(() => {
      for (let i = 0; i < 100_000; i++) listed(from('192.0.2.1'))
    })
    expect(spentMs).toBeLessThan(2000)
  })
})
