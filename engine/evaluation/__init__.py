"""How good an alignment is: Hits@k and MRR, decoders, calibrated probabilities, dangling entities, the paper's figures."""
