import { isIPv4, isIPv6 } from 'node:net'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalAddress } from './address-bits.ts'
import { createAddressReader, parseNetwork } from './ip-address.ts'

const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
const groups = fc.array(group, { minLength: 8, maxLength: 8 })
const dotted = fc.ipV4()

describe('canonicalAddress', () => {
  it.each([
    ['203.0.113.9', '203.0.113.9'],
    ['203.0.113.9:443', '203.0.113.9'],
    [' 203.0.113.9\t', '203.0.113.9'],
    ['0.0.0.0', '0.0.0.0'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::ffff:102:304', '1.2.3.4'],
    ['::FFFF:0102:0304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:1.2.3.4', '1.2.3.4'],
    ['0000:0000:0000:0000:0000:ffff:0102:0304', '1.2.3.4'],
    ['[::ffff:1.2.3.4]:80', '1.2.3.4'],
    ['::ffff:1.2.3.4%eth0', '1.2.3.4'],
    ['2001:db8::1.2.3.4', '2001:db8::/64'],
    ['2001:DB8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::9', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::9]:8443', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['[fe80::1%25eth0]', 'fe80::/64'],
    ['::1', '::/64'],
    ['::1.2.3.4', '::/64'],
    ['::ffff:0:1.2.3.4', '::/64'],
    ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
  ])('%s counts as %s', (text, canonical) => {
    expect(canonicalAddress(text)).toBe(canonical)
  })

  it.each([
    '',
    ' ',
    'unknown',
    '_hidden',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    '01.02.03.04',
    '0x7f.1',
    '127.1',
    '1.2.3.4:',
    '1.2.3.4:port',
    '1.2.3.4:123456',
    '1.2.3.4/24',
    '1..2.3',
    '.1.2.3.4',
    '1.2.3.4%eth0',
    ':',
    ':::',
    '1:',
    ':1::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '::12345',
    '::g',
    '::1.2.3',
    '1.2.3.4::',
    '[::1',
    '[::1]x',
    '[::1]:',
    '[1.2.3.4]',
    '::1]',
    '１.2.3.4',
  ])('canonicalAddress refuses %s', text => {
    expect(canonicalAddress(text)).toBeUndefined()
  })

  it('canonicalAddress refuses a very long text', () => {
    expect(canonicalAddress('1'.repeat(70_000))).toBeUndefined()
    expect(canonicalAddress(`::1${' '.repeat(70_000)}`)).toBeUndefined()
  })

  it('canonicalAddress groups by the prefix asked for', () => {
    expect(canonicalAddress('2001:db8:1:2ff:3::9', 48)).toBe('2001:db8:1::/48')
    expect(canonicalAddress('2001:db8:1:2ff:3::9', 56)).toBe('2001:db8:1:200::/56')
    expect(canonicalAddress('2001:db8:1:2ff:3::9', 128)).toBe('2001:db8:1:2ff:3::9')
    expect(canonicalAddress('::ffff:1.2.3.4', 48)).toBe('1.2.3.4')
  })

  it('canonicalAddress merges a /64 and nothing else', () => {
    const address = (network: number, host: number) => `2001:db8:0:${network.toString(16)}::${host.toString(16)}`
    const keys = new Set<string | undefined>()
    for (let network = 0; network < 50; network++) {
      for (let host = 0; host < 50; host++) keys.add(canonicalAddress(address(network, host)))
    }
    expect(keys.size).toBe(50)
  })

  it('canonicalAddress writes every IPv6 address as URLs do', () => {
    fc.assert(
      fc.property(groups, parts => {
        const text = parts.map(part => part.toString(16)).join(':')
        const shortest = new URL(`http://[${text}]/`).hostname.slice(1, -1)
        fc.pre(!shortest.startsWith('::ffff:'))
        expect(canonicalAddress(text, 128)).toBe(shortest)
        expect(canonicalAddress(shortest.toUpperCase(), 128)).toBe(shortest)
      }),
    )
  })

  it('canonicalAddress reads an IPv4 address the same in every spelling', () => {
    fc.assert(
      fc.property(dotted, text => {
        const hex = new URL(`http://[::ffff:${text}]/`).hostname
        for (const spelling of [`::ffff:${text}`, hex, `${text}:1`, `[::FFFF:${text}]:65535`]) {
          expect(canonicalAddress(spelling)).toBe(text)
        }
      }),
    )
  })

  it('canonicalAddress takes for an address what Node takes for one', () => {
    const soup = fc.string({
      unit: fc.constantFrom('0', '1', '9', 'a', 'F', ':', '::', '.', '255', 'g'),
      maxLength: 18,
    })
    const near = fc.tuple(fc.ipV6(), fc.nat(45), soup).map(([text, at, extra]) => text.slice(0, at) + extra)
    fc.assert(
      fc.property(fc.oneof(soup, near, fc.ipV6(), fc.ipV4()), text => {
        const hasPort = /^[\d.]+:\d{1,5}$/.test(text) && isIPv4(text.slice(0, text.indexOf(':')))
        expect(canonicalAddress(text) !== undefined).toBe(isIPv4(text) || isIPv6(text) || hasPort)
      }),
      { numRuns: randomRuns(1000) },
    )
  })
})

describe('parseNetwork', () => {
  it.each(['10.0.0.0/8', '10.0.0.1', '2001:db8::/32', '::/0', '0.0.0.0/0', '::ffff:10.0.0.0/104', '10.1.2.3/32'])(
    'parseNetwork accepts %s',
    text => {
      expect(parseNetwork(text)).toBeDefined()
    },
  )

  it.each([
    '::ffff:10.0.0.0/8',
    '::ffff:a00:0/95',
    '10.0.0.0/33',
    '2001:db8::/129',
    '10.0.0.0/',
    '10.0.0.0/0008',
    '10.0.0.0/ 8',
    '10.0.0.0/-1',
    '10.0.0.0/1e1',
    '10.0.0.0/8.5',
    '10.0.0/8',
    '10.0.0.0/8/8',
    'loopback',
    '',
  ])('parseNetwork refuses %s', text => {
    expect(parseNetwork(text)).toBeUndefined()
  })
})

describe('createAddressReader', () => {
  const peer = '198.51.100.7'

  it('no forwarded address is trusted by default', () => {
    const read = createAddressReader(0)
    for (const claim of [undefined, '', '1.1.1.1', '1.1.1.1, 2.2.2.2', ['1.1.1.1', '2.2.2.2']]) {
      expect(read(peer, claim)).toBe(peer)
    }
    expect(read('::ffff:198.51.100.7', '1.1.1.1')).toBe(peer)
    expect(read(undefined, '1.1.1.1')).toBeUndefined()
  })

  it.each<[string, number | string[], string | string[] | undefined, string]>([
    ['one hop takes what its proxy appended', 1, '203.0.113.9', '203.0.113.9'],
    ['what the caller put in front changes nothing', 1, '6.6.6.6, 203.0.113.9', '203.0.113.9'],
    ['two hops take the second from the right', 2, '6.6.6.6, 203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['fewer entries than hops give the peer', 3, '203.0.113.9, 10.0.0.2', peer],
    ['a dropped header gives the peer', 1, undefined, peer],
    ['an empty header gives the peer', 1, '', peer],
    ['no line gives the peer', 1, [], peer],
    ['several lines are read as one', 1, ['6.6.6.6', '7.7.7.7, 203.0.113.9'], '203.0.113.9'],
    ['hops run over the line breaks', 2, ['6.6.6.6, 203.0.113.9', '10.0.0.2'], '203.0.113.9'],
    ['a port is dropped', 1, '203.0.113.9:51000', '203.0.113.9'],
    ['brackets and a port are dropped', 1, '6.6.6.6,[2001:db8::1]:51000', '2001:db8::1'],
    ['spaces are dropped', 1, '6.6.6.6 ,   203.0.113.9  ', '203.0.113.9'],
    ['mapped IPv4 is IPv4', 1, '::ffff:cb00:7109', '203.0.113.9'],
    ['junk in the last place gives the peer', 1, '6.6.6.6, unknown', peer],
    ['an empty last place gives the peer', 1, '6.6.6.6,', peer],
    ['an empty last line gives the peer', 1, ['6.6.6.6', ''], peer],
    ['junk further left stops at the last good address', 2, '6.6.6.6, _hidden, 10.0.0.2', '10.0.0.2'],
    [
      'a trusted network is stepped over',
      ['198.51.100.0/24', '10.0.0.0/8'],
      '6.6.6.6, 203.0.113.9, 10.0.0.2',
      '203.0.113.9',
    ],
    ['a peer outside the networks speaks for itself', ['10.0.0.0/8'], '203.0.113.9', peer],
    ['all trusted gives the leftmost', ['198.51.100.0/24', '10.0.0.0/8'], '10.0.0.9, 10.0.0.2', '10.0.0.9'],
    ['no entry gives the peer', ['198.51.100.0/24'], undefined, peer],
    ['junk stops the networks too', ['198.51.100.0/24', '10.0.0.0/8'], '6.6.6.6, text, 10.0.0.2', '10.0.0.2'],
    ['a mapped network written in full is stepped over', ['::ffff:198.51.100.0/120'], '203.0.113.9', '203.0.113.9'],
    ['all of IPv6 holds no IPv4', ['::/0'], '203.0.113.9', peer],
    ['one address is a network', [peer], '203.0.113.9', '203.0.113.9'],
    ['an empty list of networks trusts no proxy', [], '203.0.113.9', peer],
  ])('%s', (_, trustProxy, forwardedFor, expected) => {
    expect(createAddressReader(trustProxy)(peer, forwardedFor)).toBe(expected)
    expect(createAddressReader(trustProxy)(`::ffff:${peer}`, forwardedFor)).toBe(expected)
  })

  it('createAddressReader compares networks by bits that do not end at a group', () => {
    const read = createAddressReader(['2001:db8:40::/42'])
    expect(read('2001:db8:7f::1', '203.0.113.9')).toBe('203.0.113.9')
    expect(read('2001:db8:80::1', '203.0.113.9')).toBe('2001:db8:80::1')
  })

  it('an unreadable peer is never trusted', () => {
    expect(createAddressReader(['0.0.0.0/0', '::/0'])('/tmp/app.sock', '203.0.113.9')).toBeUndefined()
    expect(createAddressReader(['0.0.0.0/0', '::/0'])(undefined, '203.0.113.9')).toBeUndefined()
  })

  it('createAddressReader stops after 64 entries of a header of 10 000', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
    const all = createAddressReader(['0.0.0.0/0'])
    expect(all(peer, many.join(','))).toBe(many[10_000 - 64])
    expect(all(peer, many)).toBe(many[10_000 - 64])
    expect(createAddressReader(64)(peer, many.join(','))).toBe(many[10_000 - 64])
    expect(createAddressReader(1)(peer, ','.repeat(64 * 1024))).toBe(peer)
  })

  it.each([[-1], [1.5], [Number.NaN], [65], [['::ffff:10.0.0.0/8']], [['10.0.0.0/8', 'everyone']]])(
    'createAddressReader refuses trustProxy %j',
    trustProxy => {
      expect(() => createAddressReader(trustProxy)).toThrow(expect.objectContaining({ code: 'BAD_RULES' }))
    },
  )

  it('no header makes it throw or invent an address', () => {
    const word = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string({ unit: 'binary' }), fc.constantFrom('', ' ', ',', 'unknown'))
    const header = fc.oneof(word, fc.array(word), fc.constant(undefined))
    const trust = fc.oneof(fc.nat(64), fc.constant(['0.0.0.0/1', '::/1']))
    fc.assert(
      fc.property(fc.option(word, { nil: undefined }), header, trust, (from, forwardedFor, trustProxy) => {
        const address = createAddressReader(trustProxy)(from, forwardedFor)
        expect(address === undefined || isIPv4(address) || isIPv6(address)).toBe(true)
      }),
    )
  })
})
