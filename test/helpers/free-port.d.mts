/** A port of this machine that no process listens on. */
export function freePort(): Promise<number>
