import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ProxyHeader, readProxyHeader } from './proxy-header.ts'

const signature = '\r\n\r\n\0\r\nQUIT\n'

/** A header of version 2. */
function binary(versionAndCommand: number, familyAndProtocol: number, ...content: readonly number[]): Buffer {
  const head = [versionAndCommand, familyAndProtocol, content.length >> 8, content.length & 255]
  return Buffer.concat([Buffer.from(signature, 'latin1'), Buffer.from([...head, ...content])])
}

const v4 = [203, 0, 113, 9, 198, 51, 100, 1, 0xdc, 0x04, 0x01, 0xbb]
const v6 = [0x20, 1, 0xd, 0xb8, ...Array(11).fill(0), 9, 0x20, 1, 0xd, 0xb8, ...Array(11).fill(0), 1, 0xdc, 4, 1, 0xbb]
const source4 = { address: '203.0.113.9', port: 56_324, family: 'IPv4' }

const good: [string, Buffer, unknown][] = [
  ['TCP4', Buffer.from('PROXY TCP4 203.0.113.9 198.51.100.1 56324 443\r\n'), source4],
  [
    'TCP6',
    Buffer.from('PROXY TCP6 2001:db8::9 2001:db8::1 56324 443\r\n'),
    { address: '2001:db8::9', port: 56_324, family: 'IPv6' },
  ],
  ['UNKNOWN', Buffer.from('PROXY UNKNOWN\r\n'), undefined],
  [
    'UNKNOWN with addresses',
    Buffer.from(`PROXY UNKNOWN ${'f'.repeat(39)} ${'f'.repeat(39)} 65535 65535\r\n`),
    undefined,
  ],
  ['version 2 over IPv4', binary(0x21, 0x11, ...v4), source4],
  ['version 2 with TLVs', binary(0x21, 0x11, ...v4, 0x04, 0, 3, 1, 2, 3), source4],
  ['version 2 over IPv6', binary(0x21, 0x21, ...v6), { address: '2001:db8:0:0:0:0:0:9', port: 56_324, family: 'IPv6' }],
  ['version 2, LOCAL', binary(0x20, 0x00), undefined],
  ['version 2, LOCAL with addresses', binary(0x20, 0x11, ...v4), undefined],
  ['version 2, unspecified', binary(0x21, 0x00, 1, 2, 3), undefined],
  ['version 2 over a Unix socket', binary(0x21, 0x31, ...Array(216).fill(0)), undefined],
]

describe.each(good)('a PROXY header (%s)', (_, header, source) => {
  it('a PROXY header is read with its length, whatever follows it', () => {
    for (const rest of ['', 'GET / HTTP/1.1\r\n', '\r\n', '\0\0']) {
      const read = readProxyHeader(Buffer.concat([header, Buffer.from(rest)]))
      expect(read).toEqual({ length: header.length, source })
    }
  })

  it('a PROXY header is incomplete wherever it is cut', () => {
    for (let end = 0; end < header.length; end++) {
      expect([end, readProxyHeader(header.subarray(0, end))]).toEqual([end, 'incomplete'])
    }
  })
})

it.each<[string, Buffer]>([
  ['no header', Buffer.from('GET / HTTP/1.1\r\n')],
  ['a TLS handshake', Buffer.from([0x16, 3, 1, 2, 0])],
  ['lower case', Buffer.from('proxy TCP4 203.0.113.9 198.51.100.1 56324 443\r\n')],
  ['an IPv6 address as TCP4', Buffer.from('PROXY TCP4 ::1 ::1 1 2\r\n')],
  ['an IPv4 address as TCP6', Buffer.from('PROXY TCP6 203.0.113.9 198.51.100.1 56324 443\r\n')],
  ['a zone', Buffer.from('PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n')],
  ['a port that is none', Buffer.from('PROXY TCP4 203.0.113.9 198.51.100.1 65536 443\r\n')],
  ['a port with a sign', Buffer.from('PROXY TCP4 203.0.113.9 198.51.100.1 +1 443\r\n')],
  ['a missing port', Buffer.from('PROXY TCP4 203.0.113.9 198.51.100.1 56324\r\n')],
  ['two spaces', Buffer.from('PROXY TCP4  203.0.113.9 198.51.100.1 56324 443\r\n')],
  ['a word too many', Buffer.from('PROXY TCP4 203.0.113.9 198.51.100.1 56324 443 x\r\n')],
  ['a leading zero', Buffer.from('PROXY TCP4 203.0.113.09 198.51.100.1 56324 443\r\n')],
  ['a family that is none', Buffer.from('PROXY UDP4 203.0.113.9 198.51.100.1 56324 443\r\n')],
  ['a line without an end', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(200)}`)],
  ['version 3', binary(0x31, 0x11, ...v4)],
  ['a command that is none', binary(0x22, 0x11, ...v4)],
  ['a family that is none, version 2', binary(0x21, 0x41, ...v4)],
  ['a datagram', binary(0x21, 0x12, ...v4)],
  ['addresses that are cut', binary(0x21, 0x11, ...v4.slice(1))],
  ['IPv4 addresses as IPv6', binary(0x21, 0x21, ...v4)],
  ['a header of 64 KiB', Buffer.concat([Buffer.from(signature, 'latin1'), Buffer.from([0x21, 0x11, 0xff, 0xff])])],
])('%s is not taken for a PROXY header', (_, bytes) => {
  expect(readProxyHeader(bytes)).toBe('invalid')
})

it('no bytes make the reader throw, wait for more than 4 KiB, or read beyond what is there', () => {
  const begin = fc.constantFrom('', 'PROXY ', 'PROXY TCP4 ', signature, `${signature}\x21\x11`)
  const bytes = fc.tuple(begin, fc.uint8Array({ maxLength: 300 })).map(([text, rest]) => {
    return Buffer.concat([Buffer.from(text, 'latin1'), rest])
  })
  fc.assert(
    fc.property(bytes, given => {
      const header: ProxyHeader = readProxyHeader(given)
      if (typeof header === 'object') expect(header.length).toBeLessThanOrEqual(given.length)
      const long = Buffer.concat([given, Buffer.alloc(4096)])
      expect(readProxyHeader(long)).not.toBe('incomplete')
    }),
  )
})
