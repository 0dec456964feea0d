export const SLOTS = 16_384

/** The slot of a Redis Cluster that a key belongs to: the CRC16 of the text between its first braces. */
export function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  return crc16(Buffer.from(close > open + 1 ? key.slice(open + 1, close) : key)) % SLOTS
}

/** The first whole number that, written behind a text, makes a text whose slot is at least `first` and below `end`. */
export function numberInSlots(text: string, first: number, end: number): number {
  const start = crc16(Buffer.from(text))
  for (let number = 0; ; number++) {
    const digits = String(number)
    let crc = start
    for (let i = 0; i < digits.length; i++) crc = nextCrc(crc, digits.charCodeAt(i))
    if (crc % SLOTS >= first && crc % SLOTS < end) return number
  }
}

/** CRC-16/XMODEM, as Redis computes it. */
function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) crc = nextCrc(crc, byte)
  return crc
}

function nextCrc(crc: number, byte: number): number {
  return ((crc << 8) ^ TABLE[((crc >> 8) ^ byte) & 0xff]!) & 0xffff
}

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc & 0xffff
})
