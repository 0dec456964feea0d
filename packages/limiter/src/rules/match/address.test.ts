import { expect, it } from 'vitest'
import { networkFault } from './address.ts'

it.each(['10.0.0.1', '10.0.0.0/8', '0.0.0.0/0', '::1', 'fd00::/8', '2001:db8::1/128', '2001:db8::1.2.3.4/96'])(
  'the network %s is accepted',
  text => {
    expect(networkFault(text)).toBeUndefined()
  },
)

it.each([
  ['::ffff:10.0.0.0/8', 'is an IPv4 network written as IPv6: write 10.0.0.0/8'],
  ['::ffff:a00:0/104', 'is an IPv4 network written as IPv6: write 10.0.0.0/8'],
  ['::ffff:10.0.0.1', 'is an IPv4 network written as IPv6: write 10.0.0.1'],
  ['::ffff:10.0.0.1/64', 'is an IPv4 network written as IPv6: write 10.0.0.1'],
  ['10.0.0.0/33', 'must end in a prefix from /0 to /32'],
  ['fd00::/129', 'must end in a prefix from /0 to /128'],
  ['10.0.0.0/', 'must end in a prefix'],
  ['10.0.0.0/+8', 'must end in a prefix'],
  ['10.0.0.0/8/8', 'is not an address'],
  ['10', 'is not an address'],
  ['010.0.0.1', 'is not an address'],
  ['0x0a.0.0.1', 'is not an address'],
  ['fe80::1%eth0', 'is not an address'],
  ['', 'is not an address'],
])('the network %j is refused', (text, what) => {
  expect(networkFault(text)).toContain(what)
})
