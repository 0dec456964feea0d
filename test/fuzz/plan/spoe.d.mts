export function spoeHello(): string
