/** Source of tokens and nonces. */
export interface Random {
  /** `bytes` random bytes as lower-case hex. */
  hex(bytes: number): string;
}
