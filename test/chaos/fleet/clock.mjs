// The moment by a clock that all processes of this machine share, in milliseconds.
export function moment() {
  return Number(process.hrtime.bigint()) / 1e6
}
